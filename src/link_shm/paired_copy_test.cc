// SPDX-License-Identifier: BSD-2-Clause
// Do two sides that copy one message together copy all of it, once, and nothing else?
#include "link_shm/paired_copy.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <thread>

#include "test_support.h"

namespace weft::shm {
namespace {

using testing::pattern;
using testing::RuntimeDir;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kChunk = 16 * 1024;

LocalRange whole(Bytes& bytes) { return {bytes.data(), bytes.size()}; }

// This process as its own peer: it holds the lock of a shared file. One for each thread, as a
// PeerProcess is used by one thread at a time.
PeerProcess& this_process() {
  static const RuntimeDir dir;
  static const os::SharedFilePtr file = os::SharedFile::create(dir.path() + "/locks", 4096).value();
  thread_local PeerProcess self(file, 0, ::getpid());
  return self;
}

void copy_chunks(const CopyJob& job, Side side) {
  ChunkCopier copier(side);
  copier.add_rest(job);
  copier.flush();
}

// Both ends of a message within this process.
struct Pair {
  Rendezvous rendezvous{};
  Bytes from;
  Bytes to;
  std::vector<LocalRange> source;
  std::vector<LocalRange> target;

  explicit Pair(std::size_t length) : from(pattern(length, length)), to(length) {
    source = {whole(from)};
    target = {whole(to)};
  }
  CopyJob job(Side side) {
    const bool receiver = side == Side::kReceiver;
    return {&rendezvous, &this_process(), from.size(), receiver ? target : source,
            receiver ? source : target};
  }
};

class Alone : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Alone, TheReceiverCopiesEverythingWhenTheSenderDoesNotHelp) {
  Pair pair(GetParam());
  copy_chunks(pair.job(Side::kReceiver), Side::kReceiver);
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  EXPECT_EQ(pair.rendezvous.fault.load(), 0);
  EXPECT_TRUE(pair.from == pair.to);
}

TEST_P(Alone, TheSenderCopiesEverythingWhenItComesFirst) {
  Pair pair(GetParam());
  copy_chunks(pair.job(Side::kSender), Side::kSender);
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  EXPECT_TRUE(pair.from == pair.to);
}

TEST_P(Alone, BothSidesAtOnceCopyEveryByteOnce) {
  Pair pair(GetParam());
  std::thread sender([&] { copy_chunks(pair.job(Side::kSender), Side::kSender); });
  copy_chunks(pair.job(Side::kReceiver), Side::kReceiver);
  sender.join();
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  EXPECT_TRUE(pair.from == pair.to);
  const std::uint64_t claims = pair.rendezvous.claims.load();
  EXPECT_EQ((claims & 0xffffffff) + (claims >> 32), pair.rendezvous.copied.load());
}

INSTANTIATE_TEST_SUITE_P(PairedCopy, Alone,
                         ::testing::Values(0, 1, kChunk - 1, kChunk, kChunk + 1, 3 * kChunk + 7,
                                           128 * 1024, 1024 * 1024 + 13, 5 * 1024 * 1024 + 1));

TEST(PairedCopy, SgesOfBothSidesMayBeCutDifferently) {
  Pair pair(100'000);
  auto* from = pair.from.data();
  auto* to = pair.to.data();
  pair.source = {{from, 1}, {from + 1, 0}, {from + 1, 50'001}, {from + 50'002, 49'998}};
  pair.target = {{to, 33'333}, {to + 33'333, 33'333}, {to + 66'666, 33'334}};
  copy_chunks(pair.job(Side::kReceiver), Side::kReceiver);
  EXPECT_EQ(pair.rendezvous.fault.load(), 0);
  EXPECT_TRUE(pair.from == pair.to);
}

TEST(PairedCopy, NothingBehindTheLengthIsWritten) {
  Pair pair(2 * kChunk);
  CopyJob job = pair.job(Side::kReceiver);
  job.length = kChunk + 5;
  copy_chunks(job, Side::kReceiver);
  EXPECT_TRUE(std::equal(pair.to.begin(), pair.to.begin() + kChunk + 5, pair.from.begin()));
  EXPECT_TRUE(std::all_of(pair.to.begin() + kChunk + 5, pair.to.end(),
                          [](std::byte b) { return b == std::byte{0}; }));
}

TEST(PairedCopy, AListOfThePeerThatIsTooShortIsAFaultAndNotAnOverrun) {
  Pair pair(2 * kChunk);
  pair.source = {{pair.from.data(), kChunk}};
  copy_chunks(pair.job(Side::kReceiver), Side::kReceiver);
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  EXPECT_EQ(pair.rendezvous.fault.load(), EFAULT);
}

TEST(PairedCopy, AnUnmappedAddressIsAFaultAndBothSidesComeToAnEnd) {
  Pair pair(4 * kChunk);
  pair.source = {{reinterpret_cast<void*>(16), pair.from.size()}};
  copy_chunks(pair.job(Side::kReceiver), Side::kReceiver);
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  EXPECT_EQ(pair.rendezvous.fault.load(), EFAULT);
}

// The fault of a rendezvous lies in memory that the peer writes.
TEST(PairedCopy, AFaultThatNoCopyHasIsReportedAsOne) {
  Pair pair(1);
  const std::pair<int, int> faults[] = {{0, 0},
                                        {EFAULT, EFAULT},
                                        {ENOMEM, ENOMEM},
                                        {ESRCH, ECONNRESET},
                                        {ECANCELED, ECONNRESET},
                                        {EINTR, EIO},
                                        {4095, EIO},
                                        {-1, EIO},
                                        {0x7FFF'FFFF, EIO}};
  for (const auto& [stated, reported] : faults) {
    pair.rendezvous.fault = stated;
    EXPECT_EQ(ending(pair.rendezvous), reported) << stated;
  }
}

// Several messages whose chunks go together in one system call.
class Together : public ::testing::Test {
 protected:
  Together() {
    for (const std::size_t length : {9'000u, 8'192u, 33'001u}) pairs_.emplace_back(length);
  }
  void copy() {
    ChunkCopier copier(Side::kReceiver);
    for (Pair& pair : pairs_) copier.add_rest(pair.job(Side::kReceiver));
    copier.flush();
    for (const Pair& pair : pairs_) EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  }
  bool intact(std::size_t i) const { return pairs_[i].from == pairs_[i].to; }
  int fault(std::size_t i) const { return pairs_[i].rendezvous.fault.load(); }

  std::deque<Pair> pairs_;
};

TEST_F(Together, EveryMessageIsCopied) {
  copy();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    EXPECT_TRUE(intact(i)) << i;
    EXPECT_EQ(fault(i), 0) << i;
  }
}

TEST_F(Together, OnlyTheOneThatCannotBeCopiedFails) {
  pairs_[1].source = {{reinterpret_cast<void*>(16), pairs_[1].from.size()}};
  copy();
  EXPECT_EQ(fault(1), EFAULT);
  EXPECT_EQ(fault(0), 0);
  EXPECT_EQ(fault(2), 0);
  EXPECT_TRUE(intact(0));
  EXPECT_TRUE(intact(2));
}

TEST_F(Together, AListThatIsTooShortTakesNothingOfTheNextMessage) {
  pairs_[0].source = {{pairs_[0].from.data(), 100}};
  copy();
  EXPECT_EQ(fault(0), EFAULT);
  EXPECT_TRUE(intact(1));
  EXPECT_TRUE(intact(2));
}

TEST(PairedCopy, TheReceiversShareAndTheRestAreTheWholeMessage) {
  for (const std::size_t length : {1u, 4'096u, 4'097u, 65'536u, 1'048'577u}) {
    Pair pair(length);
    claim_share(pair.rendezvous, length);
    copy_chunks(pair.job(Side::kSender), Side::kSender);
    EXPECT_EQ(all_copied(pair.rendezvous, length), false) << length;
    EXPECT_TRUE(all_claimed(pair.rendezvous, length)) << length;
    EXPECT_TRUE(being_copied(pair.rendezvous)) << length;
    ChunkCopier receiver(Side::kReceiver);
    receiver.add_share(pair.job(Side::kReceiver));
    receiver.flush();
    EXPECT_TRUE(all_copied(pair.rendezvous, length)) << length;
    EXPECT_FALSE(being_copied(pair.rendezvous)) << length;
    EXPECT_TRUE(pair.from == pair.to) << length;
  }
}

TEST(PairedCopy, AnEndedProcessIsAFault) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  const RuntimeDir dir;
  PeerProcess ended(os::SharedFile::create(dir.path() + "/locks", 4096).value(), 0, child);
  Pair pair(kChunk);
  CopyJob job = pair.job(Side::kReceiver);
  job.peer = &ended;
  copy_chunks(job, Side::kReceiver);
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  EXPECT_EQ(pair.rendezvous.fault.load(), ESRCH);
}

// This process has the id, but not the lock by which its holder would be known.
TEST(PairedCopy, AnotherProcessWithThePeersIdIsNeitherWrittenNorRead) {
  const RuntimeDir dir;
  PeerProcess reused(os::SharedFile::create(dir.path() + "/locks", 4096).value(), 1, ::getpid());
  for (const Side side : {Side::kSender, Side::kReceiver}) {
    Pair pair(4 * kChunk);
    CopyJob job = pair.job(side);
    job.peer = &reused;
    copy_chunks(job, side);
    EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
    EXPECT_EQ(pair.rendezvous.fault.load(), ESRCH);
    EXPECT_TRUE(pair.to == Bytes(pair.to.size()));
  }
}

TEST(PairedCopy, NothingIsCopiedOnceTheSenderHasItsBuffersBack) {
  Pair pair(4 * kChunk);
  pair.rendezvous.state = RendezvousState::kAbandoned;
  copy_chunks(pair.job(Side::kReceiver), Side::kReceiver);
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  EXPECT_TRUE(pair.to == Bytes(pair.to.size()));
}

TEST(PairedCopy, AbandonedChunksAreNotCopiedButCount) {
  Pair pair(4 * kChunk);
  abandon_chunks(pair.rendezvous, pair.from.size());
  copy_chunks(pair.job(Side::kSender), Side::kSender);
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
  EXPECT_EQ(pair.rendezvous.fault.load(), ECANCELED);
  EXPECT_TRUE(pair.to == Bytes(pair.to.size()));
}

TEST(PairedCopy, AChunkUnderWayKeepsAnAbandonedMessageFromBeingOver) {
  Pair pair(4 * kChunk);
  pair.rendezvous.claims = std::uint64_t{1} << 32;  // the sender has taken one
  abandon_chunks(pair.rendezvous, pair.from.size());
  EXPECT_FALSE(all_copied(pair.rendezvous, pair.from.size()));
  pair.rendezvous.copied.fetch_add(1);
  EXPECT_TRUE(all_copied(pair.rendezvous, pair.from.size()));
}

TEST(PairedCopy, ClaimsThatCannotBeTrueLeaveNothingToCopy) {
  for (const std::uint64_t claims : {~std::uint64_t{0}, std::uint64_t{0xffffffff},
                                     std::uint64_t{0xffffffff} << 32, std::uint64_t{5}}) {
    Pair pair(4 * kChunk);
    pair.rendezvous.claims = claims;
    copy_chunks(pair.job(Side::kReceiver), Side::kReceiver);
    copy_chunks(pair.job(Side::kSender), Side::kSender);
    EXPECT_TRUE(pair.to == Bytes(pair.to.size())) << claims;
  }
}

// A peer that writes the claims back again and again must not keep this side for ever.
TEST(PairedCopy, APeerThatTakesClaimsBackCannotKeepThisSideCopyingForEver) {
  for (int round = 0; round < 20; ++round) {
    Pair pair(8 * kChunk);
    std::atomic<bool> over{false};
    std::atomic<bool> begun{false};
    std::thread hostile([&] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
      while (!over && std::chrono::steady_clock::now() < end) {
        pair.rendezvous.claims.store(0);
        begun = true;
      }
    });
    while (!begun) std::this_thread::yield();
    copy_chunks(pair.job(Side::kReceiver), Side::kReceiver);
    over = true;
    hostile.join();
    ASSERT_LE(pair.rendezvous.copied.load(), 8u) << "more copies than the message has chunks";
  }
}

}  // namespace
}  // namespace weft::shm
