// SPDX-License-Identifier: BSD-2-Clause
// How does a program write to and read from the memory of another one with libibverbs?
//
// usage: write_and_read [-g GID_INDEX] [-p TCP_PORT] [HOST]
//
// Without HOST the program is the server: it registers a buffer and waits. With HOST it is the
// client: it writes a text into the server's buffer, reads it back, and then tries to write behind
// the end of that buffer, which the device of the server refuses. See README.md.
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kBytes = 4096, kTimeout = 14, kRetries = 7 };

static const char kText[] = "written by the client";

static void require(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

// The address of one side, for its peer. Both sides are assumed to have the same byte order.
struct Address {
  uint32_t qpn;
  uint32_t psn;
  uint32_t rkey;
  uint64_t buffer;
  union ibv_gid gid;
};

struct Side {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr;
  struct ibv_port_attr port;
  uint8_t gid_index;
  char* buffer;
};

// The device, a registered buffer, a completion queue and a queue pair in state RESET.
static void open_side(struct Side* side) {
  struct ibv_device** const devices = ibv_get_device_list(NULL);
  require(devices != NULL && devices[0] != NULL, "no RDMA device");
  side->context = ibv_open_device(devices[0]);
  require(side->context != NULL, "ibv_open_device");
  ibv_free_device_list(devices);
  require(ibv_query_port(side->context, 1, &side->port) == 0, "ibv_query_port");
  side->pd = ibv_alloc_pd(side->context);
  require(side->pd != NULL, "ibv_alloc_pd");
  side->buffer = calloc(1, kBytes);
  require(side->buffer != NULL, "calloc");
  side->mr = ibv_reg_mr(side->pd, side->buffer, kBytes,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  require(side->mr != NULL, "ibv_reg_mr");
  side->cq = ibv_create_cq(side->context, 16, NULL, NULL, 0);
  require(side->cq != NULL, "ibv_create_cq");
  struct ibv_qp_init_attr wanted = {.send_cq = side->cq,
                                    .recv_cq = side->cq,
                                    .cap = {16, 1, 1, 1, 0},
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1};
  side->qp = ibv_create_qp(side->pd, &wanted);
  require(side->qp != NULL, "ibv_create_qp");
}

static struct Address address_of(const struct Side* side) {
  struct Address own = {side->qp->qp_num, 1, side->mr->rkey, (uintptr_t)side->buffer, {{0}}};
  require(ibv_query_gid(side->context, 1, side->gid_index, &own.gid) == 0, "ibv_query_gid");
  return own;
}

// RESET to INIT, RTR and RTS: the queue pair is connected to that of the peer.
static void connect_to(struct Side* side, const struct Address* peer) {
  struct ibv_qp_attr attributes = {
      .qp_state = IBV_QPS_INIT,
      .port_num = 1,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  require(ibv_modify_qp(side->qp, &attributes,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
          "to INIT");
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = side->port.active_mtu;
  attributes.dest_qp_num = peer->qpn;
  attributes.rq_psn = peer->psn;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.is_global = 1;  // RoCE: the peer is named by its GID
  attributes.ah_attr.grh.dgid = peer->gid;
  attributes.ah_attr.grh.sgid_index = side->gid_index;
  attributes.ah_attr.grh.hop_limit = 64;
  attributes.ah_attr.port_num = 1;
  require(ibv_modify_qp(side->qp, &attributes,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = 1;
  attributes.timeout = kTimeout;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kRetries;
  attributes.max_rd_atomic = 1;
  require(ibv_modify_qp(side->qp, &attributes,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "to RTS");
}

// One access to the peer's buffer, from its beginning or behind it; returns its completion.
static struct ibv_wc access_peer(struct Side* side, const struct Address* peer,
                                 enum ibv_wr_opcode opcode, uint64_t offset, uint32_t length) {
  struct ibv_sge local = {(uintptr_t)side->buffer, length, side->mr->lkey};
  struct ibv_send_wr request = {
      .sg_list = &local,
      .num_sge = 1,
      .opcode = opcode,
      .wr.rdma = {.remote_addr = peer->buffer + offset, .rkey = peer->rkey}};
  struct ibv_send_wr* bad = NULL;
  require(ibv_post_send(side->qp, &request, &bad) == 0, "ibv_post_send");
  struct ibv_wc completion;
  int found = 0;
  while (found == 0) found = ibv_poll_cq(side->cq, 1, &completion);
  require(found == 1, "ibv_poll_cq");
  return completion;
}

static void run_client(struct Side* side, const struct Address* peer) {
  memcpy(side->buffer, kText, sizeof kText);
  struct ibv_wc wc = access_peer(side, peer, IBV_WR_RDMA_WRITE, 0, sizeof kText);
  printf("WRITE of %zu bytes: %s\n", sizeof kText, ibv_wc_status_str(wc.status));
  require(wc.status == IBV_WC_SUCCESS, "WRITE");

  memset(side->buffer, 0, kBytes);
  wc = access_peer(side, peer, IBV_WR_RDMA_READ, 0, sizeof kText);
  printf("READ of %zu bytes: %s: \"%s\"\n", sizeof kText, ibv_wc_status_str(wc.status),
         side->buffer);
  require(wc.status == IBV_WC_SUCCESS && strcmp(side->buffer, kText) == 0, "READ");

  // Allowed is an access to the registered range only. An error puts the queue pair into state ERR.
  wc = access_peer(side, peer, IBV_WR_RDMA_WRITE, kBytes, 1);
  printf("WRITE behind the end: status %d (%s), vendor_err %u\n", wc.status,
         ibv_wc_status_str(wc.status), wc.vendor_err);
  require(wc.status == IBV_WC_REM_ACCESS_ERR, "WRITE behind the end");
}

static void close_side(struct Side* side) {
  require(ibv_destroy_qp(side->qp) == 0, "ibv_destroy_qp");
  require(ibv_destroy_cq(side->cq) == 0, "ibv_destroy_cq");
  require(ibv_dereg_mr(side->mr) == 0, "ibv_dereg_mr");
  require(ibv_dealloc_pd(side->pd) == 0, "ibv_dealloc_pd");
  require(ibv_close_device(side->context) == 0, "ibv_close_device");
  free(side->buffer);
}

// The TCP connection over which both sides exchange their addresses.
static int meet(const char* host, const char* port) {
  struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  require(getaddrinfo(host, port, &hints, &found) == 0, "unknown host or port");
  const int fd = socket(found->ai_family, found->ai_socktype, 0);
  require(fd >= 0, "socket");
  int connection = fd;
  if (host != NULL) {
    require(connect(fd, found->ai_addr, found->ai_addrlen) == 0, "connect");
  } else {
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    require(bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 1) == 0, "listen");
    connection = accept(fd, NULL, NULL);
    require(connection >= 0, "accept");
    close(fd);
  }
  freeaddrinfo(found);
  return connection;
}

static void swap(int connection, const void* own, void* other, size_t length) {
  require(send(connection, own, length, MSG_NOSIGNAL) == (ssize_t)length, "send");
  require(recv(connection, other, length, MSG_WAITALL) == (ssize_t)length, "recv");
}

int main(int count, char** words) {
  struct Side side = {0};
  const char* port = "18515";
  for (int option; (option = getopt(count, words, "g:p:")) != -1;) {
    if (option == 'g') side.gid_index = (uint8_t)atoi(optarg);
    if (option == 'p') port = optarg;
    if (option == '?') return 2;
  }
  const char* const host = optind < count ? words[optind] : NULL;
  const int connection = meet(host, port);
  open_side(&side);
  const struct Address own = address_of(&side);
  struct Address peer;
  swap(connection, &own, &peer, sizeof own);
  connect_to(&side, &peer);
  char ready = 'r';
  swap(connection, &ready, &ready, 1);  // both queue pairs are connected
  if (host != NULL) run_client(&side, &peer);
  swap(connection, &ready, &ready, 1);  // the client is done
  if (host == NULL) printf("the buffer of the server: \"%s\"\n", side.buffer);
  const int arrived = strcmp(side.buffer, kText) == 0;
  close_side(&side);
  close(connection);
  return host != NULL || arrived ? 0 : 1;
}
