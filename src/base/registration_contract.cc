// SPDX-License-Identifier: BSD-2-Clause
// What may a device demand of programs that register memory, and which provider does so?
#include "base/registration_contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weft {
namespace {

struct Bit {
  std::string_view name;
  std::uint32_t value;
};

constexpr Bit kBits[] = {
    {"local", kDemandLocal},
    {"raw", kDemandRaw},
    {"virt_addr", kDemandVirtualAddresses},
    {"allocated", kDemandAllocated},
    {"prov_key", kDemandProviderKeys},
    {"mmu_notify", kDemandMmuNotify},
    {"rma_event", kDemandRmaEvent},
    {"endpoint", kDemandEndpoint},
};

constexpr std::uint32_t kMap = kDemandVirtualAddresses | kDemandAllocated | kDemandProviderKeys;

struct ContractRow {
  std::string_view name;
  ContractTerms terms;
};

using enum ProgressModel;

// The sources of the numbers: docs/design/contracts.md.
constexpr ContractRow kContracts[] = {
    {"default", {}},
    {"map", {kMap}},
    {"verbs", {kMap | kDemandLocal, 4, 1, 0, 256, std::size_t{1} << 30, kAutomatic, kAutomatic}},
    {"efa", {kMap | kDemandLocal, 4, 1, 0, 0, 0, kAutomatic, kAutomatic}},
    {"cxi",
     {kDemandAllocated | kDemandProviderKeys | kDemandEndpoint, 8, 1, 100, 192,
      (std::size_t{1} << 32) - 1, kManual, kManual}},
    {"ucx", {kMap | kDemandRaw, 64, 1, 65536, 1024, 0, kAutomatic, kManual}},
};

Result<std::uint32_t> bit_of(std::string_view word) {
  const auto* const bit = std::ranges::find(kBits, word, &Bit::name);
  if (bit == std::end(kBits)) {
    return Error{EINVAL, fmt::format("'{}': neither a contract nor a bit of mr_mode", word)};
  }
  return bit->value;
}

}  // namespace

Result<RegistrationContract> RegistrationContract::parse(std::string_view text) {
  const auto* const row = std::ranges::find(kContracts, text, &ContractRow::name);
  if (row != std::end(kContracts)) return RegistrationContract{row->terms, std::string(text)};
  RegistrationContract contract;
  contract.name = text;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const auto bit = bit_of(text.substr(0, comma));
    if (!bit) return bit.error();
    contract.demands |= bit.value();
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return contract;
}

std::string RegistrationContract::known_words() {
  std::string words;
  for (const ContractRow& row : kContracts) words += fmt::format("{}, ", row.name);
  words += "or a list, separated by commas, of";
  const char* separator = " ";
  for (const Bit& bit : kBits) {
    words += fmt::format("{}{}", separator, bit.name);
    separator = ", ";
  }
  return words;
}

}  // namespace weft
