// SPDX-License-Identifier: BSD-2-Clause
// Where are the libraries that this command makes programs load?
#include "layout.h"

#include <filesystem>

#include "os/program.h"

namespace weft::tools {
namespace {

namespace fs = std::filesystem;

bool are_there(const Libraries& libraries) {
  std::error_code error;
  return fs::exists(libraries.verbs + "/libibverbs.so.1", error) &&
         fs::exists(libraries.fabric + "/libweft-fi.so", error);
}

}  // namespace

Result<Libraries> find_libraries(const std::string& programs) {
  const fs::path folder = fs::path(programs);
  const std::string built = (folder / "../lib").lexically_normal();
  const std::string installed = (folder / WEFT_LIBDIR).lexically_normal();
  for (const Libraries& each : {Libraries{built + "/verbs", built},
                                Libraries{installed + "/weft", installed + "/libfabric"}}) {
    if (are_there(each)) return each;
  }
  return Error{ENOENT, "no Weft libraries beside " + programs + ": looked for " + built +
                           "/verbs/libibverbs.so.1 and " + installed + "/weft/libibverbs.so.1"};
}

Result<Libraries> own_libraries() {
  const auto program = os::own_program();
  if (!program) return program.error();
  return find_libraries(fs::path(program.value()).parent_path());
}

}  // namespace weft::tools
