// SPDX-License-Identifier: BSD-2-Clause
// Which environment makes a program use Weft?
#include "environment.h"

namespace weft::tools {
namespace {

// The search path with `folder` at its beginning, once.
std::string put_first(const std::string& folder, const std::optional<std::string>& path) {
  if (!path || path->empty() || *path == folder) return folder;
  return path->starts_with(folder + ":") ? *path : folder + ":" + *path;
}

// Each, unless the user has set it. libfabric has its own verbs provider, which would take a device
// of Weft for hardware, and sorts by names that it knows. Debian's Open MPI has its layers over
// libfabric switched off.
const std::vector<Variable>& choices() {
  static const std::vector<Variable> choices = {
      {"WEFT_LOG", "on"},
      {"FI_PROVIDER", "weft"},
      {"OMPI_MCA_pml", "cm"},
      {"OMPI_MCA_mtl", "ofi"},
      {"OMPI_MCA_mtl_ofi_provider_include", "weft"},
      {"OMPI_MCA_btl_ofi_provider_include", "weft"},
  };
  return choices;
}

}  // namespace

std::vector<Variable> environment_for(const Libraries& libraries, const std::string& links,
                                      const VariableLookup& lookup) {
  std::vector<Variable> variables = {
      {"LD_LIBRARY_PATH", put_first(libraries.verbs, lookup("LD_LIBRARY_PATH"))},
      {"FI_PROVIDER_PATH", put_first(libraries.fabric, lookup("FI_PROVIDER_PATH"))}};
  for (const Variable& each : choices()) {
    if (!lookup(each.name)) variables.push_back(each);
  }
  if (!links.empty()) variables.push_back({"FI_WEFT_LINKS", links});
  return variables;
}

std::string export_line(const Variable& variable) {
  std::string quoted;
  for (const char c : variable.value) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return "export " + variable.name + "='" + quoted + "'";
}

}  // namespace weft::tools
