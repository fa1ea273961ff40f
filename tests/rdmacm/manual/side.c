// SPDX-License-Identifier: BSD-2-Clause
// How do the two processes of the manual's test meet?
#include "side.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void expect(int holds, const char* text, const char* file, int line) {
  if (holds) return;
  printf("%s:%d: does not hold: %s (errno: %s)\n", file, line, text, strerror(errno));
  exit(1);
}

struct rdma_cm_id* unbound_id(void) {
  struct rdma_cm_id* id = NULL;
  EXPECT(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
  EXPECT(id->verbs == NULL && id->pd == NULL);
  return id;
}

struct rdma_cm_id* id_of_all_addresses(void) {
  struct rdma_cm_id* const id = unbound_id();
  struct sockaddr_in any = {.sin_family = AF_INET};
  EXPECT(rdma_bind_addr(id, (struct sockaddr*)&any) == 0);
  EXPECT(id->verbs == NULL && id->pd == NULL);
  return id;
}

struct rdma_cm_id* resolved_id(const struct Side* side, enum Service service) {
  static const enum ibv_qp_type kTypes[] = {IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_UD};
  struct rdma_addrinfo hints = {0};
  hints.ai_qp_type = kTypes[service];
  hints.ai_port_space = service == kDatagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
  struct rdma_addrinfo* info = NULL;
  EXPECT(rdma_getaddrinfo(side->host, side->ports[service], &hints, &info) == 0);
  struct rdma_cm_id* id = NULL;
  EXPECT(rdma_create_ep(&id, info, NULL, NULL) == 0);
  rdma_freeaddrinfo(info);
  EXPECT(id->verbs != NULL && id->pd != NULL && id->qp == NULL);
  return id;
}

void create_pair(struct rdma_cm_id* id, struct ibv_pd* pd) {
  struct ibv_qp_init_attr attributes = {0};
  attributes.qp_type = id->qp_type;
  if (id->qp_type != IBV_QPT_XRC_RECV) {
    attributes.cap.max_send_wr = kEntries;
    attributes.cap.max_send_sge = kSges;
    attributes.cap.max_inline_data = kInline;
  }
  if (id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_UD) {
    attributes.cap.max_recv_wr = kEntries;
    attributes.cap.max_recv_sge = kSges;
  }
  EXPECT(rdma_create_qp(id, pd, &attributes) == 0);
}

struct rdma_cm_id* next_request(const struct Side* side, enum Service service) {
  struct rdma_cm_id* id = NULL;
  EXPECT(rdma_get_request(side->listeners[service], &id) == 0);
  EXPECT(id->verbs != NULL && id->qp == NULL);
  return id;
}

void accept_request(struct rdma_cm_id* id, const struct Offer* offer) {
  struct rdma_conn_param parameters = {0};
  parameters.private_data = offer;
  parameters.private_data_len = offer != NULL ? sizeof *offer : 0;
  parameters.responder_resources = RDMA_MAX_RESP_RES;
  parameters.initiator_depth = RDMA_MAX_INIT_DEPTH;
  parameters.rnr_retry_count = 7;
  EXPECT(rdma_accept(id, &parameters) == 0);
}

void await_disconnected(struct rdma_cm_id* id) {
  struct rdma_cm_event* event = NULL;
  EXPECT(rdma_get_cm_event(id->channel, &event) == 0);
  EXPECT(event->event == RDMA_CM_EVENT_DISCONNECTED);
  EXPECT(rdma_ack_cm_event(event) == 0);
}

void end_server(struct rdma_cm_id* id) {
  await_disconnected(id);
  rdma_destroy_ep(id);
}

struct rdma_cm_id* next_connected(const struct Side* side) {
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  accept_request(id, NULL);
  return id;
}

void connect_pair(struct rdma_cm_id* id, struct Offer* offer) {
  EXPECT(rdma_connect(id, NULL) == 0);
  EXPECT(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
  if (offer == NULL) return;
  EXPECT(id->event->param.conn.private_data_len >= sizeof *offer);
  memcpy(offer, id->event->param.conn.private_data, sizeof *offer);
}

void end_client(struct rdma_cm_id* id) {
  EXPECT(rdma_disconnect(id) == 0);
  rdma_destroy_ep(id);
}

struct ibv_wc sent(struct rdma_cm_id* id, enum ibv_wc_status status) {
  struct ibv_wc completion = {0};
  EXPECT(rdma_get_send_comp(id, &completion) == 1);
  if (completion.status != status) printf("status: %s\n", ibv_wc_status_str(completion.status));
  EXPECT(completion.status == status);
  return completion;
}

struct ibv_wc received(struct rdma_cm_id* id, enum ibv_wc_status status) {
  struct ibv_wc completion = {0};
  EXPECT(rdma_get_recv_comp(id, &completion) == 1);
  if (completion.status != status) printf("status: %s\n", ibv_wc_status_str(completion.status));
  EXPECT(completion.status == status);
  return completion;
}

static unsigned char byte_at(size_t index, unsigned seed) {
  return (unsigned char)(seed + index * 7 + index / 251);
}

void fill(void* memory, size_t length, unsigned seed) {
  for (size_t i = 0; i < length; ++i) ((unsigned char*)memory)[i] = byte_at(i, seed);
}

int matches(const void* memory, size_t first, size_t end, unsigned seed) {
  for (size_t i = first; i < end; ++i) {
    if (((const unsigned char*)memory)[i] != byte_at(i, seed)) return 0;
  }
  return 1;
}

void deregister(struct ibv_mr* mr) { EXPECT(rdma_dereg_mr(mr) == 0); }
