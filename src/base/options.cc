// SPDX-License-Identifier: BSD-2-Clause
// How is each option named, explained and read?
#include "base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace weft {
namespace {

constexpr std::uint64_t kHourMs = 3'600'000;
constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;

struct Range {
  std::uint64_t least;
  std::uint64_t most;
};

// The whole text is the number: "5 s" and "five" are none.
std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

Status parse_number(std::string_view text, Range range,
                    const std::function<void(std::uint64_t)>& set) {
  const auto number = number_of(text);
  if (!number || *number < range.least || *number > range.most) {
    return Error{EINVAL, fmt::format("not a whole number from {} to {}", range.least, range.most)};
  }
  set(*number);
  return {};
}

OptionVariable milliseconds(const char* name, std::chrono::milliseconds Options::*member,
                            std::uint64_t least, std::string_view help) {
  return {name, false,
          fmt::format("{}, in milliseconds, {} to {} (default: {})", help, least, kHourMs,
                      (Options::defaults().*member).count()),
          [=](Options& options, std::string_view text) {
            return parse_number(text, {least, kHourMs}, [&](std::uint64_t number) {
              options.*member = std::chrono::milliseconds(number);
            });
          }};
}

OptionVariable bytes(const char* name, std::size_t Options::*member, std::uint64_t most,
                     std::string_view help) {
  return {name, false, fmt::format("{} (default: {})", help, Options::defaults().*member),
          [=](Options& options, std::string_view text) {
            return parse_number(text, {0, most},
                                [&](std::uint64_t number) { options.*member = number; });
          }};
}

OptionVariable truth(const char* name, bool Options::*member, std::string_view help) {
  return {name, true,
          fmt::format("{} (default: {})", help, Options::defaults().*member ? "yes" : "no"),
          [=](Options& options, std::string_view text) -> Status {
            if (text != "yes" && text != "no") return Error{EINVAL, "neither yes nor no"};
            options.*member = text == "yes";
            return {};
          }};
}

OptionVariable text(const char* name, std::string Options::*member, std::string help) {
  return {name, false, std::move(help), [=](Options& options, std::string_view value) -> Status {
            options.*member = value;
            return {};
          }};
}

// A variable with named values, the first of which is the default.
template <class Value>
OptionVariable choice(const char* name, Value Options::*member,
                      std::vector<std::pair<std::string_view, Value>> values, std::string help) {
  return {name, false, std::move(help), [=](Options& options, std::string_view text) -> Status {
            for (const auto& [word, value] : values) {
              if (word != text) continue;
              options.*member = value;
              return {};
            }
            return Error{EINVAL, "unknown"};
          }};
}

OptionVariable contract() {
  return {"contract", false,
          fmt::format("What registered memory requires of programs, fi_mr(3), as with the provider "
                      "of that name or by the named bits of mr_mode: {} (default: {})",
                      RegistrationContract::known_words(), Options::defaults().contract.name),
          [](Options& options, std::string_view text) -> Status {
            auto parsed = RegistrationContract::parse(text);
            if (!parsed) return parsed.error();
            options.contract = std::move(parsed).value();
            return {};
          }};
}

std::vector<OptionVariable> make_variables() {
  return {
      milliseconds("connect_timeout_ms", &Options::connect_timeout, 1,
                   "Time an operation waits for a peer that has not appeared yet"),
      milliseconds("peer_timeout_ms", &Options::peer_timeout, 1000,
                   "Silence of a network peer after which it counts as dead, unless its host "
                   "reports it earlier; and time of a requester of this host to confirm its "
                   "acceptance"),
      milliseconds("request_timeout_ms", &Options::request_timeout, 1,
                   "Time a connection request waits for a listener that does not answer"),
      bytes("eager_limit", &Options::eager_limit, kGibibyte,
            "Messages up to this many bytes are copied through shared memory, larger ones "
            "directly"),
      bytes("unexpected_limit", &Options::unexpected_limit, 1024 * kGibibyte,
            "Bytes of messages without a matching receive, bookkeeping included, that an endpoint "
            "keeps before it holds its peers back"),
      text("runtime_dir", &Options::runtime_dir,
           "Directory for shared files (default: $WEFT_RUNTIME_DIR, or else /dev/shm/weft-UID, or "
           "/run/user/UID/weft where another user has taken that name)"),
      text("iface", &Options::interface,
           "Names of the network interfaces to offer, separated by commas (default: all)"),
      choice<Links>("links", &Options::links,
                    {{"all", {true, true}}, {"shm", {true, false}}, {"udp", {false, true}}},
                    "Links by which peers are reached: shm, within this host; udp, over the "
                    "network; or all (default: all)"),
      contract(),
      truth("foreign_peers", &Options::foreign_peers,
            "Whether datagram endpoints receive from foreign peers (rdma_rxe, RNICs), which send "
            "to UDP port 4791, and listeners are reached through that port"),
      truth(
          "selective", &Options::selective,
          "Whether queue pairs of verbs programs retransmit lost packets alone (selective repeat) "
          "between Weft's hosts, or all packets from the first lost one on (go-back-N), as "
          "towards foreign peers; alike at both ends"),
      truth("disable_layering", &Options::disable_layering,
            "Whether utility providers are kept from layering themselves over weft"),
  };
}

std::string converted(std::string_view text, int (*convert)(int)) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [&](unsigned char c) { return convert(c); });
  return result;
}

// A truth value in the spelling of the table; any other text as it is.
std::string canonical_truth(const std::string& text) {
  const std::optional<bool> value = parse_truth(text);
  if (!value) return text;
  return *value ? "yes" : "no";
}

struct Setting {
  std::string variable;
  std::string text;
};

std::optional<Setting> setting_of(const OptionVariable& option,
                                  std::span<const std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    const std::string variable = std::string(prefix) + converted(option.name, std::toupper);
    const char* const text = ::secure_getenv(variable.c_str());
    if (text != nullptr) return Setting{variable, text};
  }
  return std::nullopt;
}

}  // namespace

std::optional<bool> parse_truth(std::string_view text) {
  const std::string lower = converted(text, std::tolower);
  for (const std::string_view yes : {"1", "true", "yes", "on"}) {
    if (lower == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "no", "off"}) {
    if (lower == no) return false;
  }
  return std::nullopt;
}

const Options& Options::defaults() {
  static const Options options;
  return options;
}

// Made while the library is loaded: a forked child waits for no thread that it lacks.
[[maybe_unused]] static const Options& made_early = Options::defaults();

Options Options::from_environment(std::span<const std::string_view> prefixes,
                                  const WarningSink& warn) {
  Options options;
  for (const OptionVariable& each : option_variables()) {
    const auto setting = setting_of(each, prefixes);
    if (!setting) continue;
    const std::string text = each.is_bool ? canonical_truth(setting->text) : setting->text;
    if (const Status status = each.parse(options, text); !status) {
      warn(fmt::format("{}={}: {}; the default is used", setting->variable, setting->text,
                       status.error().message));
    }
  }
  return options;
}

std::span<const OptionVariable> option_variables() {
  static const std::vector<OptionVariable> variables = make_variables();
  return variables;
}

}  // namespace weft
