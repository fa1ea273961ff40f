// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_cm_id of a program?
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "abi.h"
#include "cm/event.h"
#include "cm_channel.h"
#include "device_table.h"
#include "os/socket_address.h"
#include "terms.h"

namespace weft::rdmacm {

class CmSpace;
class PortManager;

// Where an id is in its life.
enum class IdState : std::uint8_t {
  kIdle,
  kBound,
  kAddressResolved,
  kRouteResolved,
  kConnecting,  // has sent its REQ, or SIDR_REQ
  kResponded,   // has a REP, which the program is to answer
  kConnected,   // UD: resolved, or accepted
  kListening,
  kRequested,  // of a request that the program decides about
  kAccepting,  // has sent its REP
  kLeft,       // its peer has ended the connection, and the program has not
  kEnded,      // the attempt has failed, or the connection has ended
};

// Set by rdma_set_option(3).
struct IdOptions {
  bool reuses_address = false;
  bool is_ipv6_only = false;
  std::uint8_t traffic_class = 0;
  std::uint8_t ack_timeout = 0;  // 0: the usual one
};

// An id. The fields of rdma_cm_id and those of the first part belong to the program's thread that
// calls; the second part is guarded by the lock of the space.
class CmId : public rdma_cm_id {
 public:
  // An id of that port space. Errors: those of eventfd(2) for an id without a channel.
  static Result<std::unique_ptr<CmId>> create(std::shared_ptr<CmSpace> space,
                                              std::shared_ptr<CmChannel> channel, void* context,
                                              rdma_port_space ps, ibv_qp_type type);
  ~CmId();
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;
  static CmId& of(rdma_cm_id* handle) { return *static_cast<CmId*>(handle); }

  CmSpace& space() const { return *space_; }
  const std::shared_ptr<CmSpace>& shared_space() const { return space_; }
  CmChannel& own_channel() const { return *channel_; }
  const std::shared_ptr<CmChannel>& shared_channel() const { return channel_; }
  // Events of it go there from now on; `channel` is that channel.
  void set_channel(std::shared_ptr<CmChannel> to);
  bool has_datagrams() const { return qp_type == IBV_QPT_UD; }

  // A new event of it.
  std::unique_ptr<CmEventRecord> event_of(rdma_cm_event_type type, int status) {
    return std::make_unique<CmEventRecord>(*this, this, type, status);
  }
  // Is bound to a device and its GID.
  void bind_to(const LocalGid& local);
  // The addresses of rdma_get_local_addr(3) and rdma_get_peer_addr(3).
  void set_source(const os::SocketAddress& address);
  void set_destination(const os::SocketAddress& address);
  os::SocketAddress source() const;
  os::SocketAddress destination() const;
  // The service that it listens for, or that its request is for.
  std::uint64_t service() const;
  // The address vector of packets to the peer of its terms.
  ibv_ah_attr address_of_peer() const;
  // Its terms have depths that its device allows from now on.
  void limit_depths();
  // The GIDs and the path of its connection.
  void set_route(const ibv_gid& peer);

  bool is_sync = false;
  rdma_cm_event* postponed = nullptr;  // of a listener: a request without a queue pair
  IdOptions options;
  LocalGid local;
  std::unique_ptr<ibv_sa_path_rec> path;
  std::vector<ibv_srq*> destroyed_queues;              // that rdma_destroy_srq(3) has found in use
  std::unique_ptr<ibv_qp_init_attr> pair_of_requests;  // rdma_create_ep(3) of a listener
  std::unique_ptr<std::byte[]> connect_data;           // rdma_addrinfo::ai_connect
  std::size_t connect_length = 0;

  IdState state = IdState::kIdle;
  std::shared_ptr<PortManager> manager;
  cm::ListenerId listener = 0;
  cm::ConnectionId connection = 0;
  ConnectionTerms terms;
  unsigned ended_requests = 0;  // of a listener: in its channel
  unsigned delivered = 0;       // events that were handed out, and of these acknowledged
  unsigned acknowledged = 0;

 private:
  CmId(std::shared_ptr<CmSpace> space, void* context, rdma_port_space ps, ibv_qp_type type);

  const std::shared_ptr<CmSpace> space_;
  std::shared_ptr<CmChannel> channel_;
};

}  // namespace weft::rdmacm
