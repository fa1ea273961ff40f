// SPDX-License-Identifier: BSD-2-Clause
// How much do 1,024 queue pairs with completion queues of their own take from the host?
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/attributes.h"
#include "support/device.h"
#include "support/request.h"

namespace weft::verbs_conformance {
namespace {

constexpr std::size_t kPairs = 1024;
constexpr std::ptrdiff_t kDescriptors = 100;
constexpr std::uint64_t kSharedMemory = std::uint64_t{64} << 20;
// One that fits a cell of a ring, one without bytes, and one that fills most of a ring.
constexpr std::uint32_t kLengths[] = {64, 0, 20'000};
constexpr std::uint32_t kRoom = 20'480;  // for the longest of them

std::ptrdiff_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all)) - 1;  // without the one of the iterator
}

// The inode numbers of the files that this process has mapped.
std::set<ino_t> mapped_files() {
  std::set<ino_t> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string other;
    ino_t inode = 0;
    fields >> other >> other >> other >> other >> inode;
    found.insert(inode);
  }
  return found;
}

// Bytes of shared memory that files of this process take. Those of other processes do not count.
std::uint64_t shared_memory() {
  const char* const chosen = std::getenv("WEFT_RUNTIME_DIR");
  const std::set<ino_t> own = mapped_files();
  std::uint64_t sum = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator all(
      chosen != nullptr ? chosen : "/dev/shm",
      std::filesystem::directory_options::skip_permission_denied, error);
  for (; !error && all != end(all); all.increment(error)) {
    struct stat file {};
    if (::lstat(all->path().c_str(), &file) != 0 || own.count(file.st_ino) == 0) continue;
    sum += static_cast<std::uint64_t>(file.st_blocks) * 512;
  }
  return sum;
}

// Queue pairs of one context, which share a buffer for what they send. Neighbours are connected.
class Many {
 public:
  Many() {
    for (Each& each : all_) {
      each.queue.reset(ibv_create_cq(context_.get(), 8, nullptr, nullptr, 0));
      ibv_qp_init_attr wanted = reliable_setup(each.queue.get(), {4, 4, 1, 1, 0});
      each.qp.reset(ibv_create_qp(pd_.get(), &wanted));
    }
  }
  bool is_complete() const {
    return mr_ != nullptr && std::ranges::all_of(all_, [](const Each& each) {
             return each.queue != nullptr && each.qp != nullptr;
           });
  }
  void connect() {
    ibv_qp_attr attributes = usual_attributes(gid_of(context_.get()));
    for (std::size_t i = 0; i < kPairs; ++i) {
      attributes.dest_qp_num = all_[i ^ 1].qp->qp_num;
      for (const auto state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
        ASSERT_EQ(move_to(all_[i].qp.get(), state, attributes), 0);
      }
    }
  }
  // Each queue pair sends a message of that length.
  void send(std::uint32_t length) {
    for (std::size_t i = 0; i < kPairs; ++i) {
      ReceiveRequest into({part(1 + i % 2, length)}, kReceived);
      SendRequest from(IBV_WR_SEND, {part(0, length)}, kSent);
      from.flagged(IBV_SEND_SIGNALED);
      ibv_recv_wr* bad_receive = nullptr;
      ibv_send_wr* bad_send = nullptr;
      ASSERT_EQ(ibv_post_recv(all_[i].qp.get(), into.get(), &bad_receive), 0);
      ASSERT_EQ(ibv_post_send(all_[i].qp.get(), from.get(), &bad_send), 0);
    }
  }
  // Every queue gets both completions.
  void expect_all(std::uint32_t length) {
    std::vector<std::uint64_t> seen(kPairs);
    ASSERT_TRUE(holds_in_time([&] {
      for (std::size_t i = 0; i < kPairs; ++i) {
        ibv_wc wc{};
        while (ibv_poll_cq(all_[i].queue.get(), 1, &wc) == 1) {
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_TRUE(wc.wr_id == kSent || wc.byte_len == length);
          seen[i] += wc.wr_id;
        }
      }
      return std::ranges::count(seen, kSent + kReceived) == kPairs;
    })) << std::ranges::count(seen, kSent + kReceived)
        << " queue pairs have all";
  }

 private:
  static constexpr std::uint64_t kSent = 1;
  static constexpr std::uint64_t kReceived = 0x10000;
  struct Each {
    Owned<ibv_cq> queue;
    Owned<ibv_qp> qp;
  };
  ibv_sge part(std::size_t slot, std::uint32_t length) const {
    return {reinterpret_cast<std::uint64_t>(memory_.data()) + slot * kRoom, length, mr_->lkey};
  }

  const Owned<ibv_context> context_ = open_device();
  const Owned<ibv_pd> pd_{ibv_alloc_pd(context_.get())};
  std::vector<std::byte> memory_ = std::vector<std::byte>(3 * std::size_t{kRoom});
  const Owned<ibv_mr> mr_{
      ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE)};
  std::vector<Each> all_ = std::vector<Each>(kPairs);
};

TEST(ManyQueuePairs, WithQueuesOfTheirOwnNeedFewDescriptorsAndLittleSharedMemory) {
  // So many packets at once may outlast all retries on a busy machine.
  const char* const links = std::getenv("FI_WEFT_LINKS");
  if (links != nullptr && std::string_view(links) == "udp") GTEST_SKIP() << "over packets";
  Many many;
  ASSERT_TRUE(many.is_complete());
  many.connect();
  for (const std::uint32_t length : kLengths) {
    many.send(length);
    many.expect_all(length);
  }
  EXPECT_LT(descriptors(), kDescriptors);
  EXPECT_GT(shared_memory(), 0U);
  EXPECT_LE(shared_memory(), kSharedMemory);
}

}  // namespace
}  // namespace weft::verbs_conformance
