// SPDX-License-Identifier: BSD-2-Clause
// Has a page of memory one number by all its mappings, and do atomic operations take turns by it?
#include "memory/page_numbers.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "memory/own_memory.h"
#include "memory/region_table.h"

namespace weft::memory {
namespace {

constexpr std::size_t kPage = kNumberedPage;
constexpr std::size_t kPages = 4;
constexpr std::uint32_t kOwn = 77;

// Memory of which every mapping is at another address.
class Object {
 public:
  Object() { EXPECT_EQ(::ftruncate(fd_, kPages * kPage), 0); }
  ~Object() {
    for (void* place : places_) ::munmap(place, kPages * kPage);
    ::close(fd_);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  std::byte* map() {
    places_.push_back(::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    return static_cast<std::byte*>(places_.back());
  }
  // In place of other pages.
  void map_over(std::byte* place) const {
    EXPECT_EQ(::mmap(place, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_, 0), place);
  }

 private:
  const int fd_ = ::memfd_create("weft-test", MFD_CLOEXEC);
  std::vector<void*> places_;
};

std::uint32_t shift_of(const void* place, std::size_t length) {
  return page_shift(::getpid(), reinterpret_cast<std::uint64_t>(place), length, kOwn);
}

// The part of a number that a stripe depends on.
std::uint64_t number_of(const std::byte* place) {
  return (reinterpret_cast<std::uint64_t>(place) / kPage + shift_of(place, 1)) &
         (kShiftOfEachPage - 1);
}

std::byte* private_pages() {
  return static_cast<std::byte*>(
      ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

TEST(PageNumbers, AllMappingsOfAPageAgree) {
  Object object;
  Object another;
  std::byte* const one = object.map();
  std::byte* const two = object.map();
  for (std::size_t i = 0; i < kPages; ++i) {
    EXPECT_EQ(number_of(one + i * kPage), number_of(two + i * kPage)) << i;
  }
  EXPECT_NE(number_of(one), number_of(one + kPage));
  EXPECT_NE(number_of(one), number_of(another.map()));
  EXPECT_EQ(shift_of(one, kPages * kPage) & kShiftOfEachPage, 0u) << "one shift for all pages";
}

TEST(PageNumbers, PrivateMemoryHasTheShiftOfItsProcess) {
  std::byte* const place = private_pages();
  EXPECT_EQ(shift_of(place, kPages * kPage), kOwn | kShiftKnown);
  ::munmap(place, kPages * kPage);
}

TEST(PageNumbers, PagesOfSeveralMappingsHaveDifferentShifts) {
  Object object;
  std::byte* const place = private_pages();
  object.map_over(place + kPage);
  EXPECT_NE(shift_of(place, kPages * kPage) & kShiftOfEachPage, 0u);
  EXPECT_EQ(shift_of(place, kPage), kOwn | kShiftKnown);
  EXPECT_EQ(number_of(place + kPage), number_of(object.map()));
  ::munmap(place, kPages * kPage);
}

// A region of a process of its own, as far as tables and guards know.
class Party {
 public:
  Party(const std::string& directory, std::byte* place) {
    table_ = std::move(RegionTable::create(directory)).value();
    const auto added = table_->add({.domain = DomainId{1},
                                    .access = Access::kRemoteRead | Access::kRemoteWrite,
                                    .base = reinterpret_cast<std::uint64_t>(place),
                                    .length = kPages * kPage,
                                    .key = RegionKey{1}});
    EXPECT_TRUE(added.ok());
    region_ = added.value();
    memory_ = std::make_unique<OwnMemory>(table_->for_owner(), DomainId{1});
  }
  bool add_one(std::uint64_t offset) {
    const std::uint64_t one = 1;
    const AtomicAction action{AtomicForm::kBase, AtomicOp::kSum, AtomicType::kUint64};
    return memory_
        ->change(action, {offset, sizeof one, RegionKey{1}},
                 reinterpret_cast<const std::byte*>(&one), nullptr, LockWait::kUsual)
        .ok();
  }
  bool refresh() { return table_->refresh(region_, {}).ok(); }

 private:
  std::unique_ptr<RegionTable> table_;
  Registration region_;
  std::unique_ptr<OwnMemory> memory_;
};

// Two regions of one object, whose words are neither at one address nor in one table.
TEST(PageNumbers, AtomicOperationsThroughTwoRegionsOfOnePageTakeTurns) {
  constexpr std::uint64_t kTurns = 10000;
  constexpr std::uint64_t kWords[] = {8, 2 * kPage - 4};  // the second one lies on two pages
  std::string directory = "/dev/shm/weft-pages-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  Object object;
  for (const bool mixed : {false, true}) {
    std::byte* const one = object.map();
    std::byte* const two = object.map();
    if (mixed) {  // the last page of each is another object's, so that pages are looked at one by
                  // one
      Object().map_over(one + (kPages - 1) * kPage);
      Object().map_over(two + (kPages - 1) * kPage);
    }
    std::memset(one, 0, 3 * kPage);
    const std::uint64_t turns = mixed ? kTurns / 50 : kTurns;
    const auto hammer = [&](std::byte* place) {
      Party party(directory, place);
      for (std::uint64_t i = 0; i < turns; ++i) {
        if (!party.add_one(kWords[0]) || !party.add_one(kWords[1])) return;
      }
    };
    std::thread other(hammer, two);
    hammer(one);
    other.join();
    for (const std::uint64_t at : kWords) {
      std::uint64_t sum = 0;
      std::memcpy(&sum, one + at, sizeof sum);
      EXPECT_EQ(sum, 2 * turns) << "of " << at;
    }
  }
  std::filesystem::remove_all(directory);
}

// A refreshed region takes turns with the others of the pages that it has now.
TEST(PageNumbers, ARefreshFindsThePagesThatAreMappedNow) {
#ifdef __SANITIZE_THREAD__
  constexpr std::uint64_t kTurns = 2000;
#else
  constexpr std::uint64_t kTurns = 10000;
#endif
  constexpr std::uint64_t kWord = kPage / 2 - 4;  // of no alignment: no instruction adds to it
  std::string directory = "/dev/shm/weft-pages-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  Object object;
  std::byte* const mapped = object.map();
  std::byte* const place = private_pages();
  Party one(directory, place);
  EXPECT_TRUE(one.add_one(kWord)) << "the pages are looked at";
  object.map_over(place);
  EXPECT_TRUE(one.refresh());
  const auto hammer = [](Party& party) {
    for (std::uint64_t i = 0; i < kTurns; ++i) {
      if (!party.add_one(kWord)) return;
    }
  };
  Party two(directory, mapped);
  std::thread other([&] { hammer(two); });
  hammer(one);
  other.join();
  std::uint64_t sum = 0;
  std::memcpy(&sum, mapped + kWord, sizeof sum);
  EXPECT_EQ(sum, 2 * kTurns);
  ::munmap(place, kPages * kPage);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace weft::memory
