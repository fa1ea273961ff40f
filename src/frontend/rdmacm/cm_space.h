// SPDX-License-Identifier: BSD-2-Clause
// What do all ids of a process share?
#pragma once

#include <condition_variable>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/options.h"
#include "base/result.h"
#include "os/origin.h"
#include "os/socket_address.h"
#include "port_manager.h"
#include "queue/port.h"

namespace weft::rdmacm {

// The lock of all ids and channels, and the managers of the UDP ports that ids are bound to.
class CmSpace {
 public:
  // The one of this process; a forked child has one of its own. Errors: those of
  // device::Device::get() and queue::QpPort::open_for_managers().
  static Result<std::shared_ptr<CmSpace>> instance();
  // Lets go of it, as the process exits: it ends with its last id.
  static void release();
  ~CmSpace();

  Mutex& lock() WEFT_RETURNS_LOCK(port_->lock()) { return port_->lock(); }
  queue::QpPort& port() { return *port_; }
  const Options& options() const { return options_; }
  // An event was acknowledged.
  std::condition_variable_any& acknowledgements() { return acknowledgements_; }

  // The manager of a UDP number, which ids share that are bound to the same address in several port
  // spaces. Errors: EADDRINUSE where another id has that address in its port space, those of
  // queue::QpPort::open_manager().
  Result<std::shared_ptr<PortManager>> bind(CmId& id, const os::SocketAddress& address);
  // The manager of ids that have no number of their own. Errors: those of
  // queue::QpPort::open_manager().
  Result<std::shared_ptr<PortManager>> for_requests();
  // An id uses that manager no more: it closes once it has no connection.
  void let_go(CmId& id);
  void close(PortManager& manager);

 private:
  explicit CmSpace(std::shared_ptr<queue::QpPort> port, const Options& options)
      : port_(std::move(port)), options_(options) {}
  Result<std::shared_ptr<PortManager>> open(const os::SocketAddress& address, bool both_families);
  void close_left(std::uint16_t port);

  const std::shared_ptr<queue::QpPort> port_;
  const Options options_;
  const os::Origin origin_;
  std::condition_variable_any acknowledgements_;
  std::vector<std::shared_ptr<PortManager>> managers_;
  std::shared_ptr<PortManager> for_requests_;
};

}  // namespace weft::rdmacm
