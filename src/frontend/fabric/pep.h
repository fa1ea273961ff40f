// SPDX-License-Identifier: BSD-2-Clause
// What is a passive endpoint to a libfabric program? fi_endpoint(3), fi_cm(3)
#pragma once

#include <rdma/fi_endpoint.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/usable.h"
#include "connect/listener.h"
#include "device/progress_thread.h"
#include "eq.h"
#include "fabric.h"
#include "fid_object.h"
#include "info.h"
#include "os/origin.h"
#include "os/udp_port.h"
#include "passive_endpoints.h"

namespace weft::fabric {

// The object behind a fid_pep. Any thread.
class PassiveEndpoint final : public ChildObject<PassiveEndpoint, fid_pep, Fabric>,
                              connect::RequestSink {
 public:
  // Binds the address of `info`, which is copied.
  static int open(Fabric& fabric, const fi_info& info, fid_pep** pep, void* context);
  // Rejects the requests that are not decided, and discards the events that are not read.
  ~PassiveEndpoint() override;

  // fi_pep_bind(3). Errors: -FI_EINVAL for a second one.
  int bind(EventQueue& eq) { return eq_.bind(eq); }
  // fi_listen(3). Errors: -FI_ENOEQ, -FI_EOPBADSTATE when it listens already or has no address any
  // more, those of making it reachable.
  int listen();
  // fi_reject(3), also of a request that an endpoint was opened for. Errors: -FI_EINVAL for what is
  // no request, or is decided.
  int reject(const struct fid* handle, const void* data, std::size_t length);
  // FI_BACKLOG of fi_control(3).
  int set_backlog(int count);
  // The address, a wildcard host replaced by a usable one; empty when an endpoint took it.
  os::SocketAddress public_name() const;
  // fi_setname(3). Errors: -FI_EOPBADSTATE once it listens, those of bind(2).
  int rename(const os::SocketAddress& address);

  // For PassiveEndpoints. A parent's has nothing to give.
  bool inherited() const { return origin_.inherited(); }
  int give_port(Beginning& beginning);
  bool give_request(const struct fid* handle, Beginning& beginning);

 private:
  // A request until it is decided, perhaps by an endpoint. Its address is the program's handle.
  struct Undecided {
    struct fid handle {};
    connect::Request request;
  };

  PassiveEndpoint(Fabric& fabric, InfoList info, os::UdpPort port, void* context);
  void stop_listening();
  bool requested(const connect::Request& request) override;
  void withdrawn(link::ConnectionNumber number) override;
  void decided(link::ConnectionNumber number) override;
  InfoList info_for(Undecided& undecided) const;
  os::SocketAddress name_for(const link::ConnectionRequest& request) const;

  const InfoList info_;
  const os::Origin origin_;
  mutable std::mutex mutex_;  // taken after the listener's, never before
  std::optional<os::UdpPort> port_;
  BoundEventQueue eq_;
  std::size_t backlog_ = connect::kUsualBacklog;
  std::map<const struct fid*, std::unique_ptr<Undecided>> undecided_;
  std::shared_ptr<connect::Listener> listener_;  // set once, under the mutex
  device::DrivenEngine driven_;                  // the listener, with FI_PROGRESS_AUTO for control
};

// Tables of operations (pep_ops.cc).
fi_ops* pep_fid_operations();
fi_ops_ep* pep_operations();
fi_ops_cm* pep_cm_operations();

}  // namespace weft::fabric
