// SPDX-License-Identifier: BSD-2-Clause
// Which environment makes a program use Weft?
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layout.h"

namespace weft::tools {

// A variable and its value.
struct Variable {
  std::string name;
  std::string value;
};

// Answers with the value of a variable, if it is set.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

// The variables to set, given those that are set already. Search paths get the folders of Weft in
// front. A choice that the user made (FI_PROVIDER, OMPI_MCA_*) is left alone. `links` is empty, or
// a value of FI_WEFT_LINKS.
std::vector<Variable> environment_for(const Libraries& libraries, const std::string& links,
                                      const VariableLookup& lookup);

// An assignment that sh(1) reads, whatever bytes the value has.
std::string export_line(const Variable& variable);

}  // namespace weft::tools
