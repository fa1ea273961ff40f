// SPDX-License-Identifier: BSD-2-Clause
// What does a program learn of a refused access, at both ends? (fi_cq(3), docs/user/reasons.md)
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "support/own_region.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kLength = 4096;

std::string hex(std::uint64_t number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

// An endpoint whose peer has a region at virtual addresses.
class ExplainedRefusal : public PlacementTest {
 protected:
  explicit ExplainedRefusal(const Options& options = usual()) : world_(GetParam(), options) {}
  static Options usual() {
    Options options;
    options.caps |= FI_ATOMIC;
    options.mr_mode = FI_MR_BASIC;
    return options;
  }
  void SetUp() override {
    ASSERT_TRUE(world_.ok());
    region_ = world_.target().expose({.length = kLength, .seed = 1});
    ASSERT_EQ(region_.rc, 0);
  }

  fid_cq* cq() { return world_.endpoint().cq(); }
  // Starts an operation that is refused, and reads its error as a program does that has filled in
  // the entry.
  void refuse(const std::function<ssize_t()>& start, fi_cq_err_entry& entry) {
    ssize_t rc = 0;
    while ((rc = start()) == -FI_EAGAIN) world_.pump().once();
    ASSERT_EQ(rc, 0);
    auto* const other = dynamic_cast<LocalParty*>(&world_.target());
    const auto deadline = std::chrono::steady_clock::now() + patience();
    fi_cq_tagged_entry none{};
    while ((rc = fi_cq_read(cq(), &none, 1)) == -FI_EAGAIN) {
      if (other != nullptr && GetParam() != Placement::kSelf) other->endpoint().poll();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    }
    ASSERT_EQ(rc, -FI_EAVAIL);
    ASSERT_EQ(fi_cq_readerr(cq(), &entry, 0), 1);
    EXPECT_EQ(entry.err, FI_EACCES);
    EXPECT_EQ(entry.op_context, &context_);
    EXPECT_EQ(entry.len, 0u);
    EXPECT_EQ(entry.data, 0u);
    EXPECT_EQ(entry.buf, nullptr);
  }
  ssize_t write(std::uint64_t address, std::uint64_t key) {
    return fi_write(world_.ep(), buffer_.data(), buffer_.size(), nullptr, world_.to_target(),
                    address, key, &context_);
  }
  std::string refuse_write(std::uint64_t address, std::uint64_t key, int reason) {
    fi_cq_err_entry entry{};
    refuse([&] { return write(address, key); }, entry);
    EXPECT_EQ(entry.prov_errno, kRefusals + reason);
    return text_of(entry);
  }
  static std::string text_of(const fi_cq_err_entry& entry) {
    if (entry.err_data == nullptr || entry.err_data_size == 0) return "no error data";
    const auto* const data = static_cast<const char*>(entry.err_data);
    EXPECT_EQ(data[entry.err_data_size - 1], '\0');
    return std::string(data, entry.err_data_size - 1);
  }
  std::string general(int reason) {
    return fi_cq_strerror(cq(), kRefusals + reason, nullptr, nullptr, 0);
  }
  // The initiator knows the region's bounds within a host only.
  std::string sentence(const std::string& access, const std::string& miss, int reason) {
    const std::string start = "key " + hex(region_.key) + ": " + access;
    if (only_links("udp")) return start + ": " + general(reason);
    return start + miss + " (region: 4096 bytes from " + hex(region_.base) + ")";
  }
  std::string sentence(const std::string& access, int reason) {
    return sentence(access, ": " + general(reason), reason);
  }

  World world_;
  Region region_;
  std::array<std::byte, 64> buffer_{};
  fi_context2 context_{};
};

TEST_P(ExplainedRefusal, NamesKeyRangeAndRegion) {
  const std::uint64_t unknown = region_.key + 1;
  EXPECT_EQ(
      refuse_write(region_.base, unknown, 1),
      "key " + hex(unknown) + ": write of 64 bytes at " + hex(region_.base) + ": " + general(1));
  const std::uint64_t before = region_.base - 8;
  EXPECT_EQ(refuse_write(before, region_.key, 2), sentence("write of 64 bytes at " + hex(before),
                                                           " begins 8 bytes before the region", 2));
  const std::uint64_t past = region_.base + kLength - 60;
  EXPECT_EQ(refuse_write(past, region_.key, 3),
            sentence("write of 64 bytes at " + hex(past), " ends 4 bytes past the region", 3));
  const std::uint64_t wraps = ~std::uint64_t{0} - 8;
  EXPECT_EQ(refuse_write(wraps, region_.key, 4), sentence("write of 64 bytes at " + hex(wraps), 4));
  const Region blank = region_;
  region_ = world_.target().expose({.length = kLength, .access = FI_REMOTE_READ});
  EXPECT_EQ(refuse_write(region_.base, region_.key, 5),
            sentence("write of 64 bytes at " + hex(region_.base), 5));
  EXPECT_EQ(world_.target().close_region(region_), 0);
  EXPECT_EQ(refuse_write(region_.base, region_.key, 1).find("key " + hex(region_.key)), 0u);
  world_.target().expect_region(blank, 1, 0, kLength);
}

TEST_P(ExplainedRefusal, NamesTheOperation) {
  const std::uint64_t past = region_.base + kLength - 4;
  fi_cq_err_entry entry{};
  refuse(
      [&] {
        return fi_read(world_.ep(), buffer_.data(), 8, nullptr, world_.to_target(), past,
                       region_.key, &context_);
      },
      entry);
  EXPECT_EQ(text_of(entry),
            sentence("read of 8 bytes at " + hex(past), " ends 4 bytes past the region", 3));
  entry = {};
  refuse(
      [&] {
        return fi_fetch_atomic(world_.ep(), buffer_.data(), 1, nullptr, buffer_.data() + 8, nullptr,
                               world_.to_target(), past, region_.key, FI_UINT64, FI_SUM, &context_);
      },
      entry);
  EXPECT_EQ(text_of(entry), sentence("atomic operation of 8 bytes at " + hex(past),
                                     " ends 4 bytes past the region", 3));
}

// Over the network the target does not say which one.
TEST_P(ExplainedRefusal, OfSeveralRangesNamesTheRefusedOrTheFirst) {
  const std::uint64_t past = region_.base + kLength - 4;
  const std::array<fi_rma_iov, 2> ranges{fi_rma_iov{region_.base, 56, region_.key},
                                         fi_rma_iov{past, 8, region_.key}};
  const iovec local{buffer_.data(), buffer_.size()};
  const fi_msg_rma msg{&local,        nullptr,       1,         world_.to_target(),
                       ranges.data(), ranges.size(), &context_, 0};
  fi_cq_err_entry entry{};
  refuse([&] { return fi_writemsg(world_.ep(), &msg, FI_COMPLETION); }, entry);
  EXPECT_EQ(entry.prov_errno, kRefusals + 3);
  const std::string all = "write of 56 bytes at " + hex(region_.base) + " (first of 2 ranges)";
  const std::string second = "write of 8 bytes at " + hex(past);
  EXPECT_EQ(text_of(entry),
            sentence(only_links("udp") ? all : second, " ends 4 bytes past the region", 3));
}

TEST_P(ExplainedRefusal, FitsIntoWhatTheProgramHasForErrorData) {
  const std::uint64_t past = region_.base + kLength;
  const auto start = [&] { return write(past, region_.key); };
  fi_cq_err_entry entry{};
  refuse(start, entry);
  const std::string whole = text_of(entry);
  EXPECT_LE(entry.err_data_size, world_.endpoint().info()->domain_attr->max_err_data);
  for (const std::size_t room :
       {std::size_t{1}, std::size_t{4}, whole.size(), whole.size() + 1, std::size_t{256}}) {
    std::string place(300, '?');
    entry = {};
    entry.err_data = place.data();
    entry.err_data_size = room;
    refuse(start, entry);
    EXPECT_EQ(entry.err_data, place.data());
    EXPECT_EQ(entry.err_data_size, std::min(room, whole.size() + 1));
    EXPECT_EQ(text_of(entry), whole.substr(0, room - 1));
    EXPECT_EQ(place.substr(room), std::string(300 - room, '?'));
  }
}

TEST_P(ExplainedRefusal, IsTurnedIntoWords) {
  fi_cq_err_entry entry{};
  refuse([&] { return write(region_.base + kLength, region_.key); }, entry);
  std::array<char, 256> text{};
  const char* words =
      fi_cq_strerror(cq(), entry.prov_errno, entry.err_data, text.data(), text.size());
  EXPECT_EQ(words, text.data());
  EXPECT_EQ(text_of(entry), words);
  EXPECT_EQ(text_of(entry), fi_cq_strerror(cq(), entry.prov_errno, entry.err_data, nullptr, 0));
  text.fill('x');
  words = fi_cq_strerror(cq(), entry.prov_errno, entry.err_data, text.data(), 4);
  EXPECT_EQ(words, std::string("key"));
  EXPECT_EQ(text[4], 'x') << "wrote past the given length";
  EXPECT_EQ(fi_cq_strerror(cq(), entry.prov_errno, nullptr, nullptr, 0), general(3));
}

INSTANTIATE_TEST_SUITE_P(Explained, ExplainedRefusal, both_process_counts(), placement_name);

// The entry of a program of that time ends before err_data_size.
class OldExplainedRefusal : public ExplainedRefusal {
 protected:
  OldExplainedRefusal() : ExplainedRefusal(old()) {}
  static Options old() {
    Options options;
    options.api = FI_VERSION(1, 4);
    options.mr_mode = FI_MR_BASIC;
    return options;
  }
};

TEST_P(OldExplainedRefusal, IsLentByTheQueue) {
  std::string place(64, '?');
  fi_cq_err_entry entry{};
  entry.err_data = place.data();
  entry.err_data_size = 12345;
  refuse([&] { return write(region_.base + kLength, region_.key); }, entry);
  EXPECT_EQ(place, std::string(64, '?'));
  EXPECT_EQ(entry.err_data_size, 12345u);
  ASSERT_NE(entry.err_data, nullptr);
  EXPECT_EQ(static_cast<const char*>(entry.err_data),
            sentence("write of 64 bytes at " + hex(region_.base + kLength),
                     " ends 64 bytes past the region", 3));
  EXPECT_EQ(std::string(static_cast<const char*>(entry.err_data)),
            fi_cq_strerror(cq(), entry.prov_errno, entry.err_data, nullptr, 0));
}

INSTANTIATE_TEST_SUITE_P(Explained, OldExplainedRefusal,
                         testing::Values(Placement::kOneProcess, Placement::kTwoProcesses),
                         placement_name);

// The target is in this process, whose log is looked at.
class WarnedTarget : public OwnRegionTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_.ok());
    if (std::getenv("FI_LOG_LEVEL") == nullptr) GTEST_SKIP() << "warnings are not written";
  }
  // Lines of the log about that many refused writes to addresses past the region.
  std::vector<std::string> warnings_of(int writes, std::uint64_t key, std::uint64_t address) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < writes; ++i) {
      const Token token = world_.target().post({.kind = Kind::kWrite,
                                                .length = 64,
                                                .seed = 1,
                                                .peer = world_.to_initiator(),
                                                .remote_address = address,
                                                .key = key});
      world_.target().wait_error(token, FI_EACCES);
    }
    world_.pump().once();
    std::vector<std::string> lines;
    std::istringstream log(testing::internal::GetCapturedStderr());
    for (std::string line; std::getline(log, line);) {
      if (line.find("refused an access of") != std::string::npos) lines.push_back(line);
    }
    return lines;
  }
};

TEST_P(WarnedTarget, NamesEachThingAtMostOnceASecond) {
  const Fid<fid_mr> mr = reg();
  make_ready(mr.get());
  const std::uint64_t base =
      required(FI_MR_VIRT_ADDR) ? reinterpret_cast<std::uint64_t>(page(0)) : 0;
  const std::uint64_t past = base + kPages * page_size() - 60;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() -
                                                            begin)
        .count();
  };
  // An earlier one may have been less than a second ago.
  std::vector<std::string> lines;
  while (lines.empty() && elapsed() < patience().count() / 1000) {
    lines = warnings_of(100, fi_mr_key(mr.get()), past);
  }
  ASSERT_FALSE(lines.empty());
  EXPECT_LE(static_cast<long>(lines.size()), elapsed() + 2);
  for (const std::string& part :
       {"key " + hex(fi_mr_key(mr.get())), "write of 64 bytes at " + hex(past),
        std::string("ends 4 bytes past the region (region: "),
        std::to_string(kPages * page_size()) + " bytes from " + hex(base)}) {
    EXPECT_NE(lines[0].find(part), std::string::npos) << lines[0] << " lacks " << part;
  }
}

INSTANTIATE_TEST_SUITE_P(Explained, WarnedTarget,
                         testing::Values(Placement::kTwoProcesses, Placement::kConnectedProcesses),
                         placement_name);

}  // namespace
}  // namespace weft::conformance
