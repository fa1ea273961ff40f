// SPDX-License-Identifier: BSD-2-Clause
// How does a fuzzer run as a test, without libFuzzer? Over its corpus and over inputs from a seed.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

// UBSan says nothing to a death callback, so that it has to raise a signal.
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace {

using Bytes = std::vector<std::uint8_t>;

char now_running[256] = "nothing";

void say_what_ran() { std::fprintf(stderr, "fuzz: this happened in %s\n", now_running); }

void on_signal(int number) {
  say_what_ran();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void run(const Bytes& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

std::vector<Bytes> run_corpus(const std::string& directory) {
  std::vector<Bytes> corpus;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    std::snprintf(now_running, sizeof now_running, "%s", path.c_str());
    run(corpus.back());
  }
  return corpus;
}

// Every fourth input is random, the others are seeds with some bytes changed and some appended.
Bytes make_input(const std::vector<Bytes>& corpus, unsigned seed, unsigned number) {
  std::mt19937 random(seed * 2654435761u + number);
  const auto any = [&] { return static_cast<std::uint8_t>(random() >> 13); };
  Bytes input;
  if (number % 4 != 0 && !corpus.empty()) {
    input = corpus[random() % corpus.size()];
    for (unsigned i = random() % 8; i != 0 && !input.empty(); --i) {
      input[random() % input.size()] = any();
    }
  }
  for (unsigned i = random() % 400; i != 0; --i) input.push_back(any());
  return input;
}

}  // namespace

// Arguments: CORPUS [--seed N] [--inputs N] [--seconds N] [--only NUMBER]
int main(int argc, char** argv) {
  if (argc < 2) return 2;
  unsigned seed = 1;
  unsigned inputs = 1000;
  long seconds = 15;
  long only = -1;
  for (int i = 2; i + 1 < argc; i += 2) {
    const long value = std::strtol(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0) seed = static_cast<unsigned>(value);
    if (std::strcmp(argv[i], "--inputs") == 0) inputs = static_cast<unsigned>(value);
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = value;
    if (std::strcmp(argv[i], "--only") == 0) only = value;
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(say_what_ran);
  std::signal(SIGABRT, on_signal);
  const std::vector<Bytes> corpus = run_corpus(argv[1]);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  unsigned done = 0;
  for (unsigned i = 0; i < inputs && std::chrono::steady_clock::now() < end; ++i) {
    if (only >= 0 && static_cast<long>(i) != only) continue;
    std::snprintf(now_running, sizeof now_running, "input %u of seed %u", i, seed);
    run(make_input(corpus, seed, i));
    ++done;
  }
  std::printf("%zu inputs of the corpus and %u of seed %u\n", corpus.size(), done, seed);
  return 0;
}
