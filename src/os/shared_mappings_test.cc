// SPDX-License-Identifier: BSD-2-Clause
// Are shared mappings told from private ones, with their place in the object?
#include "os/shared_mappings.h"

#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::os {
namespace {

constexpr std::size_t kPage = 4096;

std::uint64_t address_of(const void* place) { return reinterpret_cast<std::uint64_t>(place); }

std::vector<SharedMapping> found_at(const void* place, std::size_t length) {
  return shared_mappings(::getpid(), address_of(place), length);
}

TEST(SharedMappings, AFileHasItsIdentityAndItsOffset) {
  const int fd = ::memfd_create("weft-test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, 8 * kPage), 0);
  void* place = ::mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * kPage);
  const auto found = found_at(place, 1);
  struct stat file {};
  ASSERT_EQ(::fstat(fd, &file), 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin, address_of(place));
  EXPECT_EQ(found[0].end, address_of(place) + 4 * kPage);
  EXPECT_EQ(found[0].offset, 2 * kPage);
  EXPECT_EQ(found[0].object, (FileIdentity{file.st_dev, file.st_ino}));
  EXPECT_EQ(found_at(static_cast<char*>(place) + 4 * kPage - 1, 1).size(), 1u);
  ::munmap(place, 4 * kPage);
  ::close(fd);
}

TEST(SharedMappings, PrivateMemoryIsNotAmongThem) {
  const int fd = ::memfd_create("weft-test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, kPage), 0);
  for (const int file : {-1, fd}) {
    const int flags = MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0);
    void* place = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, flags, file, 0);
    EXPECT_TRUE(found_at(place, kPage).empty());
    ::munmap(place, kPage);
  }
  ::close(fd);
}

TEST(SharedMappings, SegmentsAndMemoryOfForkedChildrenAreShared) {
  const int segment = ::shmget(IPC_PRIVATE, kPage, IPC_CREAT | 0600);
  ASSERT_GE(segment, 0);
  void* attached = ::shmat(segment, nullptr, 0);
  ::shmctl(segment, IPC_RMID, nullptr);
  EXPECT_EQ(found_at(attached, kPage).size(), 1u);
  ::shmdt(attached);
  void* place = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(found_at(place, kPage).size(), 1u);
  ::munmap(place, kPage);
}

TEST(SharedMappings, AProcessThatIsGoneHasNone) {
  EXPECT_TRUE(shared_mappings(0x3fffffff, 0, ~std::uint64_t{0}).empty());
}

}  // namespace
}  // namespace weft::os
