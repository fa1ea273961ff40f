// SPDX-License-Identifier: BSD-2-Clause
// What do all front ends of one process share?
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/authorization.h"
#include "base/result.h"
#include "base/types.h"
#include "capture/capture.h"
#include "device/stats_file.h"
#include "memory/access_guard.h"
#include "memory/region_table.h"
#include "os/runtime_dir.h"

namespace weft::device {

class RelayEngine;

// The one device of this process: its runtime directory, its region table and its domain numbers.
// Any thread.
class Device {
 public:
  // The device of this process, opened by the first call and closed when the last user lets go.
  // `base_directory` counts only in the call that opens it; empty: the default. Sweeps up after
  // dead processes. It has no directory where the file of the region table cannot be made in one.
  // Errors: those of os::RuntimeDirectory; EMFILE, ENFILE and ENOMEM of
  // memory::RegionTable::create().
  static Result<std::shared_ptr<Device>> get(const std::string& base_directory);

  // Sweeps up once more, as this may be the last process, and removes the directory if it is.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Removes what processes left behind that are dead by now.
  void sweep_up() const;
  // Where the shared files lie. Empty when there is no such place: peers are reached over the
  // network only then, and no_directory() says why.
  const std::string& directory() const { return directory_.path(); }
  const Error& no_directory() const { return directory_.problem(); }
  // Warns that a link within the host is missing for that reason; once.
  void warn_of_network(const Error& reason);
  // Registered memory, of all domains.
  memory::RegionTable& regions() { return *regions_; }
  // The same, for the parts of this process that access its memory.
  const std::shared_ptr<memory::RegionTableView>& regions_of_users() const {
    return regions_of_users_;
  }
  // The counters of this process and of its ports.
  StatsFile& stats() { return *stats_; }
  // Where what endpoints send and receive is written down, or null (docs/user/capture.md).
  const std::shared_ptr<capture::Capture>& capture() const { return capture_; }
  // The handler of the port that foreign peers send to, for as long as an endpoint uses it.
  // Errors: those of ProgressThread::get().
  Result<std::shared_ptr<RelayEngine>> relay_engine();
  // The authorization keys of endpoints and regions.
  Authorizations& authorizations() { return authorizations_; }
  // A domain number that was not given out before.
  DomainId new_domain() { return DomainId{next_domain_.fetch_add(1)}; }

 private:
  Device(os::RuntimeDirectory directory, std::unique_ptr<memory::RegionTable> regions);
  static Result<std::shared_ptr<Device>> open(const std::string& base_directory);

  const os::RuntimeDirectory directory_;  // goes last: the others have files in it
  const std::shared_ptr<StatsFile> stats_;
  const std::unique_ptr<memory::RegionTable> regions_;
  const std::shared_ptr<memory::RegionTableView> regions_of_users_;
  const std::shared_ptr<capture::Capture> capture_ = capture::Capture::of_process();
  Authorizations authorizations_;
  std::mutex relay_engine_mutex_;
  std::weak_ptr<RelayEngine> relay_engine_;
  std::atomic<std::uint32_t> next_domain_{1};
  std::atomic_flag warned_;
};

}  // namespace weft::device
