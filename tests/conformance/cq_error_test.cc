// SPDX-License-Identifier: BSD-2-Clause
// How does a completion queue hand out errors? (fi_cq(3))
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "support/placements.h"

namespace weft::conformance {
namespace {

class CqError : public testing::Test {
 protected:
  CqError() : world_(Placement::kOneProcess, Options{}) {}

  fid_cq* cq() { return world_.endpoint().cq(); }

  // A cancelled receive is an error that needs no peer.
  Token cause_error() {
    const Token token = world_.initiator().post({.kind = Kind::kTrecv, .length = 8, .tag = 4});
    EXPECT_EQ(world_.initiator().cancel(token), 0);
    return token;
  }
  ssize_t read(fi_cq_tagged_entry* entry) {
    ssize_t got = -FI_EAGAIN;
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (got == -FI_EAGAIN && std::chrono::steady_clock::now() < deadline) {
      got = fi_cq_read(cq(), entry, 1);
    }
    return got;
  }

  World world_;
};

TEST_F(CqError, NoErrorMeansAgain) {
  ASSERT_TRUE(world_.ok());
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq(), &error, 0), -FI_EAGAIN);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_read(cq(), &entry, 1), -FI_EAGAIN);
}

TEST_F(CqError, QueueIsBlockedUntilTheErrorIsRead) {
  ASSERT_TRUE(world_.ok());
  const Token token = cause_error();
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(read(&entry), -FI_EAVAIL);
  EXPECT_EQ(read(&entry), -FI_EAVAIL);
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq(), &error, 0), 1);
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, world_.initiator().context_of(token));
  EXPECT_EQ(fi_cq_readerr(cq(), &error, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_read(cq(), &entry, 1), -FI_EAGAIN);
}

TEST_F(CqError, EveryErrorIsReportedOnce) {
  ASSERT_TRUE(world_.ok());
  std::array<Token, 20> tokens{};
  for (Token& token : tokens) token = cause_error();
  for (const Token token : tokens) world_.initiator().wait_error(token, FI_ECANCELED);
  EXPECT_EQ(world_.initiator().leftovers(), 0u);
}

TEST_F(CqError, ErrorsHideNoSuccess) {
  ASSERT_TRUE(world_.ok());
  for (int i = 0; i < 10; ++i) {
    const Token failed = cause_error();
    const Token received = world_.initiator().post({.kind = Kind::kRecv, .length = 8});
    const Token sent = world_.target().post(
        {.kind = Kind::kSend, .length = 8, .seed = 3, .peer = world_.to_initiator()});
    world_.initiator().wait_success(received);
    world_.initiator().wait_error(failed, FI_ECANCELED);
    world_.target().wait_success(sent);
  }
}

TEST_F(CqError, ErrorDataStaysWithinTheGivenBuffer) {
  ASSERT_TRUE(world_.ok());
  cause_error();
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(read(&entry), -FI_EAVAIL);
  std::array<std::uint8_t, 64> data;
  data.fill(0xEE);
  fi_cq_err_entry error{};
  error.err_data = data.data();
  error.err_data_size = 4;
  EXPECT_EQ(fi_cq_readerr(cq(), &error, 0), 1);
  EXPECT_LE(error.err_data_size, 4u);
  for (std::size_t i = 4; i < data.size(); ++i) EXPECT_EQ(data[i], 0xEE);
}

TEST_F(CqError, ErrorHasWords) {
  ASSERT_TRUE(world_.ok());
  cause_error();
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(read(&entry), -FI_EAVAIL);
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq(), &error, 0), 1);
  std::array<char, 128> text{};
  const char* words =
      fi_cq_strerror(cq(), error.prov_errno, error.err_data, text.data(), text.size());
  ASSERT_NE(words, nullptr);
  EXPECT_STRNE(words, "");
  std::array<char, 8> tiny;
  tiny.fill('x');
  fi_cq_strerror(cq(), error.prov_errno, error.err_data, tiny.data(), 4);
  EXPECT_EQ(std::string(tiny.data() + 4, 4), "xxxx") << "wrote past the given length";
}

// fi_cq_err_entry has grown: a program passes what the API had that it was compiled for. Here that
// ends where the memory does.
TEST(OldCqError, IsNotWrittenBehindItsEnd) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const end = static_cast<std::uint8_t*>(memory) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  for (const std::uint32_t api :
       {FI_VERSION(1, 0), FI_VERSION(1, 4), FI_VERSION(1, 5), FI_VERSION(1, 17)}) {
    SCOPED_TRACE(FI_MINOR(api));
    const bool old = api < FI_VERSION(1, 5);
    Options options;
    options.api = api;
    if (old) options.mr_mode = FI_MR_UNSPEC;
    World world(Placement::kSelf, options);
    ASSERT_TRUE(world.ok());
    const Token token = world.initiator().post({.kind = Kind::kTrecv, .length = 8, .tag = 4});
    EXPECT_EQ(world.initiator().cancel(token), 0);
    const std::size_t bytes =
        old ? offsetof(fi_cq_err_entry, err_data_size) : sizeof(fi_cq_err_entry);
    auto* const entry = reinterpret_cast<fi_cq_err_entry*>(end - bytes);
    std::memset(end - bytes, 0, bytes);
    ssize_t got = -FI_EAGAIN;
    while (got == -FI_EAGAIN) got = fi_cq_readerr(world.endpoint().cq(), entry, 0);
    EXPECT_EQ(got, 1);
    EXPECT_EQ(entry->err, FI_ECANCELED);
    EXPECT_EQ(entry->op_context, world.initiator().context_of(token));
    EXPECT_EQ(entry->err_data, nullptr);
  }
  EXPECT_EQ(munmap(memory, 2 * page), 0);
}

}  // namespace
}  // namespace weft::conformance
