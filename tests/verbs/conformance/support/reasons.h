// SPDX-License-Identifier: BSD-2-Clause
// Which number does a failed completion have in vendor_err? (docs/user/reasons.md)
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace weft::verbs_conformance {

// Rules that forbid an access.
enum Reason : std::uint32_t {
  kUnknownKey = 65'537,
  kBeforeStart = 65'538,
  kPastEnd = 65'539,
  kWraps = 65'540,
  kNoRight = 65'541,
  kNotServed = 65'543,
};

// Go-back-N is spoken with foreign peers, too, whose NAKs name no rule.
inline bool peers_name_rules() {
  const char* const selective = std::getenv("WEFT_SELECTIVE");
  return selective == nullptr || std::string_view(selective) != "no";
}

// The number of a request that the peer has refused by that rule.
inline std::uint32_t refused_by(Reason reason) {
  if (!peers_name_rules()) return EACCES;
  return reason;
}

// True for a number that a completion of that status may have; of a refused access any rule.
inline bool explains(ibv_wc_status status, std::uint32_t number) {
  const bool rule = number > 65'536 && number < 65'552;
  switch (static_cast<int>(status)) {
    case IBV_WC_SUCCESS:
      return number == 0;
    case IBV_WC_LOC_LEN_ERR:
      return number == 265;
    case IBV_WC_LOC_QP_OP_ERR:
      return number == EIO;
    case IBV_WC_LOC_PROT_ERR:
      return number == EFAULT || rule;
    case IBV_WC_WR_FLUSH_ERR:
      return number == ECANCELED;
    case IBV_WC_REM_ACCESS_ERR:
      return peers_name_rules() ? rule : number == EACCES;
    case IBV_WC_REM_INV_REQ_ERR:
      return number == EREMOTEIO || (peers_name_rules() && number == kNotServed);
    case IBV_WC_REM_OP_ERR:
      return number == EREMOTEIO;
    case IBV_WC_RETRY_EXC_ERR:
      return number == ECONNRESET;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return number == 269;
    default:
      return false;
  }
}

}  // namespace weft::verbs_conformance
