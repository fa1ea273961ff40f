// SPDX-License-Identifier: BSD-2-Clause
// How are packets written to a file while a program runs?
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/event.h"
#include "os/private_file.h"
#include "os/thread.h"
#include "wire/tap.h"

namespace weft::capture {

inline constexpr std::uint64_t kDefaultLimit = std::uint64_t{4} << 30;

struct CaptureOptions {
  // %p stands for the number of this process. When another process writes that file, ".PID" is
  // added to it.
  std::string path;
  std::uint64_t limit = kDefaultLimit;  // bytes of the file
};

// A number of bytes as users write it: "4096", "64K", "10M", "2G"; nothing for anything else, and
// for 0.
std::optional<std::uint64_t> bytes_of(std::string_view text);

// The capture file of a process. It takes packets until it is as long as it may be, or cannot be
// written any more: stderr is told that once, and packets go unrecorded from then on. What was
// taken is in the file a second later at the latest, in whole packets. A forked child's copy does
// nothing. Any thread.
class Capture {
 public:
  // The capture of this process that the variables WEFT_CAPTURE (a path) and WEFT_CAPTURE_LIMIT
  // (see bytes_of()) ask for, opened by the first call and finished when the process exits; null
  // when none is asked for, or when it cannot be written, of which stderr was told.
  static std::shared_ptr<Capture> of_process();

  // Errors: those of os::PrivateFile::create(), EMFILE, ENOSPC.
  static Result<std::shared_ptr<Capture>> open(const CaptureOptions& options);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Where packets go that a socket sent or received.
  wire::Tap& network() { return network_; }
  // Where records of operations within the host go (record.h): the file says so.
  wire::Tap& host() { return host_; }
  // False once no more packets are taken.
  bool takes() const;

  // Writes to the file what was taken.
  void flush();
  // The same, and from now on each packet at once.
  void finish();

  // The file's name, without %p.
  const std::string& path() const { return file_.path(); }

 private:
  // One kind of packets.
  class Lane final : public wire::Tap {
   public:
    Lane(Capture& capture, std::string_view remark) : capture_(capture), remark_(remark) {}
    bool takes() const override { return capture_.takes(); }
    void packet(wire::CaptureDirection direction, const wire::Route& route, wire::Ipv4Words words,
                std::span<const std::byte> datagram, std::string_view remark) override;

   private:
    Capture& capture_;
    const std::string_view remark_;  // about each of them, which has none of its own
  };

  Capture(os::PrivateFile file, os::Event wake_event, std::uint64_t limit);
  bool mine() const;
  void begin();
  void take(const std::vector<std::byte>& block);
  void write_out();
  void stop(const std::string& why);
  void keep_up();
  void run();

  Lane network_{*this, {}};
  Lane host_{*this, "within the host"};
  const pid_t process_;
  const std::uint64_t limit_;
  std::atomic<bool> takes_{true};
  os::Event wake_event_;  // something is to be written, or the thread shall end
  std::mutex mutex_;
  os::PrivateFile file_;
  std::vector<std::byte> buffer_;  // whole blocks
  bool finished_ = false;
  bool running_ = false;  // thread_ was started
  os::Thread thread_;
};

}  // namespace weft::capture
