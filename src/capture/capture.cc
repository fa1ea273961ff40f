// SPDX-License-Identifier: BSD-2-Clause
// How are packets written to a file while a program runs?
#include "capture/capture.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>

#include "os/process_memory.h"

namespace weft::capture {
namespace {

constexpr std::size_t kBuffered = std::size_t{256} * 1024;
constexpr auto kAtLatest = std::chrono::milliseconds(900);
constexpr auto kForEver = std::chrono::milliseconds(-1);
// Weft's endpoints have ports of their own, which do not identify the protocol.
constexpr std::string_view kHint =
    "RoCEv2 at UDP ports that readers do not know. Weft's tools/wireshark/weft.lua shows all of "
    "it: tshark -X lua_script:weft.lua -r FILE. Without, all but reliable datagrams and records: "
    "tshark -d udp.port==1-65535,infiniband -r FILE";

void append(std::vector<std::byte>& to, const std::vector<std::byte>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void warn(const std::string& text) { std::fprintf(stderr, "weft: capture: %s\n", text.c_str()); }

std::uint64_t now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

std::string with_process(std::string path) {
  const std::string number = std::to_string(os::process_id());
  for (std::size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at)) {
    path.replace(at, 2, number);
  }
  return path;
}

Result<os::PrivateFile> create(const std::string& wanted) {
  const std::string path = with_process(wanted);
  auto file = os::PrivateFile::create(path);
  if (file || file.error().code != EBUSY) return file;
  return os::PrivateFile::create(path + "." + std::to_string(os::process_id()));
}

}  // namespace

std::optional<std::uint64_t> bytes_of(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number == 0) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  unsigned shift = 0;
  if (unit == "K") shift = 10;
  if (unit == "M") shift = 20;
  if (unit == "G") shift = 30;
  if (!unit.empty() && shift == 0) return std::nullopt;
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

Capture::Capture(os::PrivateFile file, os::Event wake_event, std::uint64_t limit)
    : process_(os::process_id()),
      limit_(limit),
      wake_event_(std::move(wake_event)),
      file_(std::move(file)) {}

Result<std::shared_ptr<Capture>> Capture::open(const CaptureOptions& options) {
  auto file = create(options.path);
  if (!file) return file.error();
  auto wake_event = os::Event::create();
  if (!wake_event) return wake_event.error();
  std::vector<std::byte> head =
      wire::capture_header("weft, process " + std::to_string(os::process_id()), kHint);
  // One only: libpcap reads no second one without a link header.
  append(head, wire::capture_interface("weft0"));
  if (const Status ok = file.value().append(head); !ok) return ok.error();
  return std::shared_ptr<Capture>(
      new Capture(std::move(file).value(), std::move(wake_event).value(), options.limit));
}

// A forked child inherits the buffer, which the parent writes. The thread does not exist in the
// child, and the mutex may be held by a thread that does not exist there either.
Capture::~Capture() {
  if (mine()) {
    finish();
  } else {
    thread_.forget();
  }
}

bool Capture::mine() const { return process_ == os::process_id(); }

bool Capture::takes() const { return takes_.load(std::memory_order_relaxed) && mine(); }

void Capture::Lane::packet(wire::CaptureDirection direction, const wire::Route& route,
                           wire::Ipv4Words words, std::span<const std::byte> datagram,
                           std::string_view remark) {
  if (!capture_.takes()) return;
  const std::lock_guard guard(capture_.mutex_);
  capture_.take(wire::capture_packet(0, now(), direction, route, words, datagram,
                                     remark.empty() ? remark_ : remark));
}

void Capture::take(const std::vector<std::byte>& block) {
  if (!takes_.load(std::memory_order_relaxed)) return;
  if (file_.size() + buffer_.size() + block.size() > limit_) {
    write_out();
    return stop(path() + " has as many bytes as WEFT_CAPTURE_LIMIT allows (" +
                std::to_string(limit_) + ")");
  }
  const bool first = buffer_.empty();
  append(buffer_, block);
  if (finished_ || buffer_.size() >= kBuffered) return write_out();
  if (first) keep_up();
}

// Under the mutex, like everything from here to run().
void Capture::write_out() {
  if (buffer_.empty()) return;
  const Status ok = file_.append(buffer_);
  buffer_.clear();
  if (!ok) stop(ok.error().message);
}

void Capture::stop(const std::string& why) {
  if (!takes_.exchange(false)) return;
  warn(why + "; the capture ends here, the program continues");
}

// Without a thread each packet is written at once.
void Capture::keep_up() {
  if (!running_) {
    auto thread = os::Thread::start([this] { run(); });
    if (!thread) return write_out();
    thread_ = std::move(thread).value();
    running_ = true;
  }
  wake_event_.set();
}

void Capture::run() {
  for (bool goes_on = true; goes_on;) {
    os::wait_readable(wake_event_.fd(), kForEver);
    wake_event_.clear();
    {
      const std::lock_guard guard(mutex_);
      if (finished_) return;
    }
    os::wait_readable(wake_event_.fd(), kAtLatest);
    const std::lock_guard guard(mutex_);
    write_out();
    goes_on = !finished_;
  }
}

void Capture::flush() {
  if (!mine()) return;
  const std::lock_guard guard(mutex_);
  write_out();
}

void Capture::finish() {
  if (!mine()) return;
  os::Thread ended;
  {
    const std::lock_guard guard(mutex_);
    write_out();
    finished_ = true;
    ended = std::move(thread_);
  }
  wake_event_.set();
}

}  // namespace weft::capture
