// SPDX-License-Identifier: BSD-2-Clause
// What do `weft run` and `weft env` do?
#include "run.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "environment.h"
#include "os/program.h"

namespace weft::tools {
namespace {

constexpr int kFailure = 1;
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

int fail(const Error& error, int status) {
  std::fprintf(stderr, "weft: %s\n", error.message.c_str());
  return status;
}

std::optional<std::string> current(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<std::vector<Variable>> environment(const std::string& links) {
  const auto libraries = own_libraries();
  if (!libraries) return libraries.error();
  return environment_for(libraries.value(), links, current);
}

int status_of(const Error& error) { return error.code == ENOENT ? kNotFound : kCannotRun; }

}  // namespace

int run(const std::vector<std::string>& program_and_arguments, const std::string& links) {
  const auto path = os::find_program(program_and_arguments.front());
  if (!path) return fail(path.error(), status_of(path.error()));
  if (const Status heeds = os::check_loader_heeds(path.value()); !heeds) {
    return fail({heeds.error().code, heeds.error().message + ": it cannot be made to use Weft"},
                kCannotRun);
  }
  const auto variables = environment(links);
  if (!variables) return fail(variables.error(), kFailure);
  for (const Variable& each : variables.value()) os::set_environment(each.name, each.value);
  const Error error = os::run_program(
      path.value(), {program_and_arguments.begin() + 1, program_and_arguments.end()});
  return fail(error, status_of(error));
}

int print_environment(const std::string& links) {
  const auto variables = environment(links);
  if (!variables) return fail(variables.error(), kFailure);
  for (const Variable& each : variables.value()) std::puts(export_line(each).c_str());
  return 0;
}

}  // namespace weft::tools
