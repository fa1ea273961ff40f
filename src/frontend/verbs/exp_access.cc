// SPDX-License-Identifier: BSD-2-Clause
// What do the access flags of experimental verbs mean?
#include "exp_access.h"

#include <array>
#include <cerrno>

#include "mr.h"

namespace weft::verbs {
namespace {

constexpr std::uint64_t kPlain = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE |
                                 IBV_EXP_ACCESS_REMOTE_READ | IBV_EXP_ACCESS_REMOTE_ATOMIC |
                                 IBV_EXP_ACCESS_MW_BIND;
constexpr std::uint64_t kNotOffered = IBV_EXP_ACCESS_PHYSICAL_ADDR | IBV_EXP_ACCESS_TUNNELED_ATOMIC;
constexpr std::uint64_t kKnownFlags = kPlain | kGrants | kNotOffered | IBV_EXP_ACCESS_ALLOCATE_MR |
                                      IBV_EXP_ACCESS_NO_RDMA | IBV_EXP_ACCESS_MW_ZERO_BASED |
                                      IBV_EXP_ACCESS_ON_DEMAND | IBV_EXP_ACCESS_RELAXED;

struct GrantMode {
  std::uint64_t grant;
  unsigned mode;
};
constexpr std::array<GrantMode, 6> kModes = {{
    {IBV_EXP_ACCESS_SHARED_MR_USER_READ, 0400},
    {IBV_EXP_ACCESS_SHARED_MR_USER_WRITE, 0200},
    {IBV_EXP_ACCESS_SHARED_MR_GROUP_READ, 0040},
    {IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE, 0020},
    {IBV_EXP_ACCESS_SHARED_MR_OTHER_READ, 0004},
    {IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE, 0002},
}};

}  // namespace

int check_exp_access(std::uint64_t access) {
  if ((access & ~kKnownFlags) != 0) return EINVAL;
  if ((access & kNotOffered) != 0) return EOPNOTSUPP;
  return check_rights(plain_access(access));
}

unsigned plain_access(std::uint64_t access) {
  const auto plain = static_cast<unsigned>(access & kPlain);
  return (access & IBV_EXP_ACCESS_ON_DEMAND) != 0 ? plain | IBV_ACCESS_ON_DEMAND : plain;
}

unsigned mode_of_grants(std::uint64_t access) {
  unsigned mode = 0;
  for (const GrantMode& each : kModes) {
    if ((access & each.grant) != 0) mode |= each.mode;
  }
  return mode;
}

}  // namespace weft::verbs
