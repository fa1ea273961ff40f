// SPDX-License-Identifier: BSD-2-Clause
// What can a test tell one side of a conversation to do, whichever process it lives in?
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "endpoint.h"
#include "operation.h"

namespace weft::conformance {

// Names an operation or a region of one party. kNoToken stands for the NULL context of completions
// that no posted operation caused.
using Token = std::uint64_t;
inline constexpr Token kNoToken = 0;

struct RegionSpec {
  std::uint64_t length = 4096;
  std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
  std::uint64_t seed = 0;  // 0: left blank.
  std::uint32_t misalignment = 0;
  // Registered in so many equal parts, the last bytes of the memory first (fi_mr_regv).
  std::uint32_t segments = 1;
  std::uint64_t counts = 0;  // FI_REMOTE_WRITE, FI_REMOTE_READ: a counter of its own counts those
};

// A registered buffer as a peer needs to know it.
struct Region {
  int rc = 0;
  Token token = kNoToken;
  std::uint64_t key = 0;
  std::uint64_t base = 0;  // Remote address of the first byte, by the domain's contract.
  std::uint64_t length = 0;
  // By fi_mr_raw_attr(); the size is 0 where that fails.
  std::array<std::uint8_t, 64> raw_key{};
  std::uint64_t raw_size = 0;
  std::uint64_t raw_base = 0;
};

struct Request {
  enum class What : std::uint8_t {
    kName,
    kInsert,
    kConnect,
    kAccept,
    kPost,
    kWait,
    kCheck,
    kExpose,
    kCheckRegion,
    kCloseRegion,
    kMapKey,
    kUnmapKey,
    kCounter,
    kCounterError,
    kWaitCounter,
    kWaitRegionCounter,
    kCancel,
    kLeftovers,
    kGoodbye,
  };
  What what = What::kName;
  Operation operation;
  RegionSpec region;
  Address address;
  Token token = kNoToken;
  Region other_region;    // whose raw key is mapped
  std::uint64_t key = 0;  // of a mapping
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  std::uint64_t limit_ms = 0;  // of what is waited for; 0: patience()
};

struct Reply {
  std::int64_t rc = 0;
  std::uint64_t value = 0;
  bool arrived = false;
  Completion completion;
  Region region;
  Address address;
  std::array<char, 240> text{};  // A failed check, in words.
};

struct Posted {
  ssize_t rc;
  Token token;
};

// One side of a conversation. Calls return when done; patience() bounds each.
class Party {
 public:
  virtual ~Party() = default;
  virtual Reply call(const Request& request) = 0;

  Address name();
  fi_addr_t insert(const Address& address);
  // Of an FI_EP_MSG: begins to connect to the other's name; waits for a request and for the
  // connection that comes of it.
  void connect(const Address& address);
  void accept();
  // Posts, retrying while the answer is -FI_EAGAIN. The source buffer holds operation.seed's
  // pattern; it is overwritten as soon as the interface lets the application reuse it.
  Posted try_post(const Operation& operation);
  // Like try_post, but anything else than success fails the test.
  Token post(const Operation& operation);
  // The completion of an operation; nothing (and a test failure) when it does not come.
  std::optional<Completion> wait(Token token);
  // The same, and no failure when it does not come in that time.
  std::optional<Completion> look_for(Token token, std::chrono::milliseconds limit);
  // The completion has to be a success.
  Completion wait_success(Token token);
  // The completion has to be this error.
  Completion wait_error(Token token, int err);

  // The buffer of a receive or read holds `count` bytes of the pattern, from its byte `skip` (a
  // multiple of 8) on, and nothing else was touched.
  void expect_data(Token token, std::uint64_t seed, std::uint64_t count, std::uint64_t skip = 0);
  Region expose(const RegionSpec& spec);
  // `count` bytes at `offset` of the region hold the pattern; its guards are intact.
  void expect_region(const Region& region, std::uint64_t seed, std::uint64_t offset,
                     std::uint64_t count);
  void expect_region_blank(const Region& region, std::uint64_t offset, std::uint64_t count);
  int close_region(const Region& region);
  // By fi_mr_map_raw(): the key by which this party accesses another party's region.
  std::uint64_t map_key(const Region& region);
  void unmap_key(std::uint64_t key);

  std::uint64_t counter(std::uint64_t event);
  std::uint64_t counter_error(std::uint64_t event);
  // Waits until the counter has this value or more, by reading it (which drives progress).
  void expect_counter(std::uint64_t event, std::uint64_t value);
  // The same for the counter of a region.
  void expect_counted(const Region& region, std::uint64_t value);
  int cancel(Token token);
  // Completions that arrived and were not read, after some further progress.
  std::uint64_t leftovers();
};

}  // namespace weft::conformance
