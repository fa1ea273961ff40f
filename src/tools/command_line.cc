// SPDX-License-Identifier: BSD-2-Clause
// How is the command line of `weft` read?
#include "command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "info.h"
#include "run.h"

namespace weft::tools {
namespace {

constexpr char kRunFooter[] =
    "PROGRAM loads Weft's libibverbs.so.1 (LD_LIBRARY_PATH) and finds the libfabric provider weft\n"
    "(FI_PROVIDER_PATH, and FI_PROVIDER=weft unless it is set); Open MPI uses that provider "
    "unless\n"
    "OMPI_MCA_* or its command line says otherwise. Set-user-ID and static programs cannot be "
    "run.\n"
    "Exit status: that of PROGRAM; 127 if it is not found, 126 if it cannot be run.";
constexpr char kEnvFooter[] = "In a script: eval \"$(weft env)\"";

constexpr int kWrongUsage = 2;

int fail_usage(const std::string& problem) {
  std::fprintf(stderr, "weft %s\nTry weft run --help\n", problem.c_str());
  return kWrongUsage;
}

void add_links(CLI::App& command, std::string& links) {
  command
      .add_option("--links", links,
                  "Links by which libfabric peers are reached (FI_WEFT_LINKS): shm, within this "
                  "host; udp; or all")
      ->check(CLI::IsMember({"shm", "udp", "all"}));
}

// Without the "--" between the options of `weft run` and its program: CLI11 would take it for the
// beginning of positional arguments, which that command has not.
std::vector<char*> without_separator(int count, char** words) {
  std::vector<char*> kept(words, words + count);
  std::size_t at = 2;
  while (at < kept.size() && kept[at][0] == '-' && std::string(kept[at]) != "--") {
    at += std::string(kept[at]) == "--links" ? 2 : 1;
  }
  if (at < kept.size() && std::string(kept[at]) == "--") {
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return kept;
}

int run_remaining(const CLI::App& command, const std::string& links) {
  const std::vector<std::string> words = command.remaining();
  if (words.empty()) return fail_usage("run: no PROGRAM is named");
  if (words.front().starts_with('-')) {
    return fail_usage("run: unknown option " + words.front());
  }
  return run(words, links);
}

}  // namespace

int execute(int count, char** words) {
  CLI::App app("Runs RDMA programs on Weft, without RDMA hardware.", "weft");
  app.require_subcommand(1);
  app.set_version_flag("--version", WEFT_VERSION);
  std::string links;

  CLI::App* const run_command = app.add_subcommand("run", "run PROGRAM [ARGUMENTS...] on Weft");
  add_links(*run_command, links);
  run_command->prefix_command();  // all from PROGRAM on is for the program
  run_command->footer(kRunFooter);

  CLI::App* const env_command =
      app.add_subcommand("env", "print the environment of `weft run` for a shell");
  add_links(*env_command, links);
  env_command->footer(kEnvFooter);

  app.add_subcommand("info", "list devices, limits, and what this environment allows");

  try {
    const std::vector<char*> kept = without_separator(count, words);
    app.parse(static_cast<int>(kept.size()), kept.data());
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  if (run_command->parsed()) return run_remaining(*run_command, links);
  if (env_command->parsed()) return print_environment(links);
  return print_info();
}

}  // namespace weft::tools
