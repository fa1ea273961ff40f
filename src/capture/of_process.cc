// SPDX-License-Identifier: BSD-2-Clause
// Does the user want a capture of this process?
#include <cstdio>
#include <mutex>

#include "capture/capture.h"
#include "os/at_fork.h"
#include "os/environment.h"
#include "os/process_memory.h"

namespace weft::capture {
namespace {

// The one capture of this process. It stays open when a device closes: the next one goes on in it.
struct Current {
  std::mutex mutex;
  std::shared_ptr<Capture> capture;
  pid_t process = 0;  // that `capture` belongs to, if there is one
};

// Outlives every static destructor that closes a device.
Current& current = *new Current;

os::AtFork at_fork(3, current.mutex);

// Programs may end without closing anything.
struct AtExit {
  ~AtExit() {
    const std::lock_guard guard(current.mutex);
    if (current.capture != nullptr) current.capture->finish();
  }
};
const AtExit at_exit;

std::shared_ptr<Capture> open_as_asked() {
  CaptureOptions options;
  options.path = os::environment("WEFT_CAPTURE");
  if (options.path.empty()) return nullptr;
  const std::string limit = os::environment("WEFT_CAPTURE_LIMIT");
  if (const auto bytes = bytes_of(limit)) {
    options.limit = *bytes;
  } else if (!limit.empty()) {
    std::fprintf(
        stderr,
        "weft: capture: WEFT_CAPTURE_LIMIT=%s is invalid: a number of bytes, with the suffix "
        "K, M or G or none, is expected; the limit is 4G\n",
        limit.c_str());
  }
  auto opened = Capture::open(options);
  if (opened) return std::move(opened).value();
  std::fprintf(stderr, "weft: capture: %s; nothing is captured\n", opened.error().message.c_str());
  return nullptr;
}

}  // namespace

std::shared_ptr<Capture> Capture::of_process() {
  const std::lock_guard guard(current.mutex);
  if (current.process != os::process_id()) {
    current.process = os::process_id();
    current.capture = open_as_asked();
  }
  return current.capture;
}

}  // namespace weft::capture
