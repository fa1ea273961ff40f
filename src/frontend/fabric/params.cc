// SPDX-License-Identifier: BSD-2-Clause
// Which FI_WEFT_* variables are there, and what did the user set?
#include "params.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "log.h"
#include "offer.h"

namespace weft::fabric {
namespace {

struct Definition {
  const char* name;
  fi_param_type type;
  std::string help;
};

// Numbers are declared as strings, because libfabric's own conversion takes "5 s" for 5 and "five"
// for 0 without a word.
std::vector<Definition> definitions() {
  const messaging::Options usual;
  return {
      {"connect_timeout_ms", FI_PARAM_STRING,
       fmt::format("How many milliseconds an operation waits for a peer that has not appeared yet, "
                   "1 to 3600000 (default: {})",
                   usual.connect_timeout.count())},
      {"peer_timeout_ms", FI_PARAM_STRING,
       fmt::format("How many milliseconds a peer on the network may be silent before it is taken "
                   "for dead, if its host does not say so earlier, 1000 to 3600000 (default: {})",
                   usual.peer_timeout.count())},
      {"request_timeout_ms", FI_PARAM_STRING,
       fmt::format("How many milliseconds a request for a connection waits for a listener that "
                   "does not look, 1 to 3600000 (default: {})",
                   usual.request_timeout.count())},
      {"eager_limit", FI_PARAM_STRING,
       fmt::format("Messages up to this many bytes are copied through shared memory, larger ones "
                   "directly (default: {})",
                   usual.eager_limit)},
      {"unexpected_limit", FI_PARAM_STRING,
       fmt::format("Bytes of messages without a matching receive, and of the bookkeeping for them, "
                   "that an endpoint keeps before it stops taking in more (default: {})",
                   usual.unexpected_limit)},
      {"runtime_dir", FI_PARAM_STRING,
       "Directory for shared files (default: $WEFT_RUNTIME_DIR, or else /dev/shm/weft-UID, or "
       "/run/user/UID/weft where another user has taken that name)"},
      {"iface", FI_PARAM_STRING, "Name of the only network interface to offer (default: all)"},
      {"links", FI_PARAM_STRING,
       "How peers are reached: shm, within this host; udp, over the network; or all, whichever "
       "leads to them (default: all)"},
      {"contract", FI_PARAM_STRING,
       "What registered memory requires of programs, fi_mr(3): default, nothing; or map, "
       "FI_MR_VIRT_ADDR, FI_MR_ALLOCATED and FI_MR_PROV_KEY, as most RNICs do (default: default)"},
      {"foreign_peers", FI_PARAM_BOOL,
       "Whether datagram endpoints hear peers that are not Weft's (rdma_rxe, RNICs), which send to "
       "UDP port 4791 (default: yes)"},
      {"disable_layering", FI_PARAM_BOOL,
       "Whether utility providers are kept from layering themselves over weft (default: yes)"},
  };
}

std::optional<std::string> text_of(fi_provider& provider, const char* name) {
  char* value = nullptr;
  if (fi_param_get_str(&provider, name, &value) != 0 || value == nullptr) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

std::uint64_t number_of(fi_provider& provider, const char* name, std::uint64_t least,
                        std::uint64_t most, std::uint64_t usual) {
  const std::optional<std::string> text = text_of(provider, name);
  if (!text) return usual;
  const std::optional<std::uint64_t> number = number_in(*text);
  if (number && *number >= least && *number <= most) return *number;
  log_warning(FI_LOG_CORE, "{}={}: not a whole number from {} to {}; {} is used", name, *text,
              least, most, usual);
  return usual;
}

bool truth_of(fi_provider& provider, const char* name, bool usual) {
  int value = usual ? 1 : 0;
  const int status = fi_param_get_bool(&provider, name, &value);
  if (status == -FI_EINVAL) {
    log_warning(FI_LOG_CORE, "{}: neither yes nor no; {} is used", name, usual ? "yes" : "no");
  }
  return status == 0 ? value != 0 : usual;
}

link::Links links_of(fi_provider& provider) {
  const std::string links = text_of(provider, "links").value_or("all");
  if (links == "udp") return {false, true};
  if (links == "shm") return {true, false};
  if (links != "all") log_warning(FI_LOG_CORE, "links={}: unknown; all is used", links);
  return {true, true};
}

int mr_modes_of(fi_provider& provider) {
  const std::string contract = text_of(provider, "contract").value_or("default");
  if (contract == "map") return kMapMrModes;
  if (contract != "default") {
    log_warning(FI_LOG_CORE, "contract={}: unknown; default is used", contract);
  }
  return 0;
}

}  // namespace

void define_parameters(const fi_provider& provider) {
  for (const Definition& definition : definitions()) {
    fi_param_define(&provider, definition.name, definition.type, "%s", definition.help.c_str());
  }
}

Parameters read_parameters(fi_provider& provider) {
  constexpr std::uint64_t kHour = 3'600'000;
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  Parameters parameters;
  messaging::Options& options = parameters.options;
  options.connect_timeout = std::chrono::milliseconds(
      number_of(provider, "connect_timeout_ms", 1, kHour, options.connect_timeout.count()));
  options.peer_timeout = std::chrono::milliseconds(
      number_of(provider, "peer_timeout_ms", 1000, kHour, options.peer_timeout.count()));
  options.request_timeout = std::chrono::milliseconds(
      number_of(provider, "request_timeout_ms", 1, kHour, options.request_timeout.count()));
  options.eager_limit = number_of(provider, "eager_limit", 0, kGibibyte, options.eager_limit);
  options.unexpected_limit =
      number_of(provider, "unexpected_limit", 0, 1024 * kGibibyte, options.unexpected_limit);
  options.runtime_dir = text_of(provider, "runtime_dir").value_or("");
  parameters.interface = text_of(provider, "iface").value_or("");
  parameters.disable_layering = truth_of(provider, "disable_layering", parameters.disable_layering);
  parameters.mr_modes = mr_modes_of(provider);
  options.links = links_of(provider);
  options.foreign_peers = truth_of(provider, "foreign_peers", options.foreign_peers);
  return parameters;
}

}  // namespace weft::fabric
