// SPDX-License-Identifier: BSD-2-Clause
// How do FI_WEFT_* variables become options?
#include "params.h"

#include <rdma/fi_errno.h>

#include <optional>
#include <string>

#include "log.h"

namespace weft::fabric {
namespace {

// The text that the user set, if any. libfabric reads truth values itself, in many spellings.
std::optional<std::string> text_of(fi_provider& provider, const OptionVariable& variable) {
  if (variable.is_bool) {
    int value = 0;
    const int status = fi_param_get_bool(&provider, variable.name, &value);
    if (status == -FI_EINVAL) return "";
    if (status != 0) return std::nullopt;
    return value != 0 ? "yes" : "no";
  }
  char* value = nullptr;
  if (fi_param_get_str(&provider, variable.name, &value) != 0 || value == nullptr) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

// Numbers are declared as strings: libfabric's own conversion takes "5 s" for 5 and "five" for 0
// without a warning.
void define_parameters(const fi_provider& provider) {
  for (const OptionVariable& each : option_variables()) {
    fi_param_define(&provider, each.name, each.is_bool ? FI_PARAM_BOOL : FI_PARAM_STRING, "%s",
                    each.help.c_str());
  }
}

Options read_parameters(fi_provider& provider) {
  Options options;
  for (const OptionVariable& each : option_variables()) {
    const auto text = text_of(provider, each);
    if (!text) continue;
    if (const Status status = each.parse(options, *text); !status) {
      log_warning(FI_LOG_CORE, "{}={}: {}; the default is used", each.name, *text,
                  status.error().message);
    }
  }
  return options;
}

}  // namespace weft::fabric
