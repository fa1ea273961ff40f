// SPDX-License-Identifier: BSD-2-Clause
// What may a device demand of programs that register memory, and which provider does so?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weft {

// Bits of mr_mode (fi_mr(3)) with libfabric's values.
enum RegistrationDemand : std::uint32_t {
  kDemandLocal = 1u << 2,
  kDemandRaw = 1u << 3,
  kDemandVirtualAddresses = 1u << 4,
  kDemandAllocated = 1u << 5,
  kDemandProviderKeys = 1u << 6,
  kDemandMmuNotify = 1u << 7,
  kDemandRmaEvent = 1u << 8,
  kDemandEndpoint = 1u << 9,
};

// A progress model of fi_domain(3).
enum class ProgressModel : std::uint8_t {
  kChosen,     // what the program asks for
  kAutomatic,  // FI_PROGRESS_AUTO, unless the program asks for less
  kManual,     // FI_PROGRESS_MANUAL: more cannot be asked for
};

// The terms of a contract. A limit of 0 is Weft's own.
struct ContractTerms {
  std::uint32_t demands = 0;     // RegistrationDemand bits
  std::size_t key_size = 0;      // mr_key_size, in bytes
  std::size_t segments = 0;      // mr_iov_limit: of one region
  std::size_t regions = 0;       // mr_cnt: of one domain
  std::size_t inject_size = 0;   // bytes
  std::size_t message_size = 0;  // bytes, of RMA too
  ProgressModel control = ProgressModel::kChosen;
  ProgressModel data = ProgressModel::kChosen;
};

// One row of the table of contracts (docs/design/contracts.md), or a list of bits.
struct RegistrationContract : ContractTerms {
  std::string name = "default";

  // The contract that a user names: a row's name, or names of bits, separated by commas. Error:
  // EINVAL with the word that is neither.
  static Result<RegistrationContract> parse(std::string_view text);
  // The words that parse() takes, for users.
  static std::string known_words();
};

}  // namespace weft
