// SPDX-License-Identifier: BSD-2-Clause
// Does the kernel let exactly those processes attach a region that its grants name?
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "region_test_support.h"

namespace weft::shared_memory {
namespace {

using namespace testing_support;

constexpr uid_t kOwner = 1001;
constexpr gid_t kOwnersGroup = 2001;

struct Identity {
  const char* name;
  uid_t user;
  gid_t group;
  std::vector<gid_t> further;
  int shift;  // of its class among the mode bits; -1: it may do all
};

const std::array<Identity, 5> kIdentities{{{"owner", kOwner, 2009, {}, 6},
                                           {"group", 1002, kOwnersGroup, {}, 3},
                                           {"supplementary group", 1003, 2003, {kOwnersGroup}, 3},
                                           {"other", 1004, 2004, {2005}, 0},
                                           {"root", 0, 0, {}, -1}}};

bool take_identity(const Identity& identity) {
  return ::setgroups(identity.further.size(), identity.further.data()) == 0 &&
         ::setgid(identity.group) == 0 && ::setuid(identity.user) == 0;
}

bool take_owners_identity() { return take_identity({"owner", kOwner, kOwnersGroup, {}, 6}); }

// The mode bits of the combination `number` of the six grants.
unsigned mode_of(unsigned number) {
  unsigned mode = 0;
  for (unsigned bit = 0; bit < 6; ++bit) {
    if ((number >> bit & 1) != 0) mode |= 1U << (bit / 2 * 3 + bit % 2 + 1);
  }
  return mode;
}

bool grants(unsigned mode, int shift, bool writable) {
  const unsigned needed = writable ? 06 : 04;
  return shift < 0 || (mode >> static_cast<unsigned>(shift) & needed) == needed;
}

// A region for each combination of grants, which one process shares.
struct Regions {
  std::array<std::uint32_t, 64> ids;
};

bool share_all(Regions& regions) {
  static std::vector<std::unique_ptr<RegionMemory>> kept;
  for (unsigned number = 0; number < regions.ids.size(); ++number) {
    kept.push_back(share(mode_of(number)));
    if (kept.back() == nullptr) return false;
    regions.ids[number] = kept.back()->id();
  }
  return true;
}

// How many of the answers are not those of open(2).
int count_wrong(const Identity& identity, const Regions& regions) {
  int wrong = 0;
  for (unsigned number = 1; number < regions.ids.size(); ++number) {
    for (const bool writable : {false, true}) {
      const unsigned mode = mode_of(number);
      const int expected = grants(mode, identity.shift, writable) ? 0 : EACCES;
      const int found = attach_error(regions.ids[number], writable);
      EXPECT_EQ(found, expected) << identity.name << ", mode " << std::oct << mode << ", "
                                 << writable;
      wrong += found != expected ? 1 : 0;
    }
  }
  return wrong;
}

TEST(Grants, AreThoseOfTheModeBitsForEachClassAndCombination) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become other users";
  in_own_shm([] {
    const os::SharedValue<Regions> regions;
    const os::Sleeper owner([&] { return take_owners_identity() && share_all(*regions); });
    EXPECT_EQ(regions->ids[0], 0U) << "no grants, no id";
    EXPECT_EQ(region_names().size(), 63U);
    for (const Identity& identity : kIdentities) {
      EXPECT_EQ(os::in_child([&] {
                  return take_identity(identity) ? count_wrong(identity, *regions) : 100;
                }),
                0)
          << identity.name;
    }
  });
}

TEST(Grants, BindTheCreatorsProcessToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become other users";
  in_own_shm([] {
    EXPECT_EQ(os::in_child([] {
                Regions regions;
                const Identity owner{"creator", kOwner, kOwnersGroup, {}, 6};
                if (!take_identity(owner) || !share_all(regions)) return 100;
                return count_wrong(owner, regions);
              }),
              0);
  });
}

TEST(Grants, ExactlyOneClassCounts) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become other users";
  in_own_shm([] {
    const Creator creator(0206, kPage, take_owners_identity);
    const std::array expected{EACCES, EACCES, EACCES, 0, 0};
    for (std::size_t i = 0; i < kIdentities.size(); ++i) {
      const Identity& identity = kIdentities[i];
      EXPECT_EQ(os::in_child([&] {
                  return take_identity(identity) ? attach_error(creator.id(), true) : 100;
                }),
                expected[i])
          << identity.name;
    }
  });
}

TEST(Grants, AreTheModeOfTheFileWhateverTheUmask) {
  in_own_shm([] {
    const mode_t before = ::umask(0777);
    const auto region = share(0646);
    ::umask(before);
    struct stat info {};
    ASSERT_EQ(::stat(("/dev/shm/" + region_names().at(0)).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode, static_cast<mode_t>(S_IFREG | 0646));
    EXPECT_EQ(info.st_uid, ::geteuid());
  });
}

TEST(Grants, AreForTheGroupOfTheProcessAndNotOfTheDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory to a group";
  in_own_shm([] {
    ASSERT_EQ(::chown("/dev/shm", 0, 2007), 0);
    ASSERT_EQ(::chmod("/dev/shm", 03777), 0);
    const Creator creator(0640, kPage, take_owners_identity);
    struct stat info {};
    ASSERT_EQ(::stat(("/dev/shm/" + region_names().at(0)).c_str(), &info), 0);
    EXPECT_EQ(info.st_gid, kOwnersGroup);
    EXPECT_EQ(info.st_mode, static_cast<mode_t>(S_IFREG | 0640));
  });
}

}  // namespace
}  // namespace weft::shared_memory
