// SPDX-License-Identifier: BSD-2-Clause
// Which shared receive queue has an id? (rdma_create_srq(3), rdma_destroy_srq(3))
#include <errno.h>
#include <stdlib.h>

#include "side.h"

enum { kBytes = 2000, kMessages = 3, kSeed = 70, kMostMs = 2000 };

static struct ibv_srq_init_attr usual_attributes(void) {
  const struct ibv_srq_init_attr attributes = {.attr = {.max_wr = kEntries, .max_sge = kSges}};
  return attributes;
}

static void create_srq(struct rdma_cm_id* id, struct ibv_pd* pd) {
  struct ibv_srq_init_attr attributes = usual_attributes();
  EXPECT(rdma_create_srq(id, pd, &attributes) == 0);
  EXPECT(id->srq != NULL && id->srq->context == id->verbs);
}

static void refused(struct rdma_cm_id* id, struct ibv_pd* pd, int code) {
  struct ibv_srq_init_attr attributes = usual_attributes();
  errno = 0;
  EXPECT(rdma_create_srq(id, pd, &attributes) == -1 && errno == code);
}

static void post_to(struct rdma_cm_id* id, unsigned char (*memory)[kBytes], struct ibv_mr* mr) {
  for (int i = 0; i < kMessages; ++i) {
    EXPECT(rdma_post_recv(id, &memory[i], memory[i], kBytes, mr) == 0);
  }
}

static void receive_all(struct rdma_cm_id* id, unsigned char (*memory)[kBytes]) {
  for (unsigned i = 0; i < kMessages; ++i) {
    const struct ibv_wc completion = received(id, IBV_WC_SUCCESS);
    EXPECT(completion.wr_id == (uintptr_t)&memory[i] && completion.byte_len == kBytes);
    EXPECT(matches(memory[i], 0, kBytes, kSeed + i));
  }
}

// Creation on one side alone.

static void create_in_default_domain(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  struct rdma_cm_id* const other = resolved_id(side, kReliable);
  create_srq(id, NULL);
  create_srq(other, NULL);
  EXPECT(id->pd == other->pd);
  EXPECT(id->srq->pd == id->pd && other->srq->pd == id->pd);
  rdma_destroy_ep(other);
  rdma_destroy_ep(id);
}

static void create_in_given_domain(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  struct ibv_pd* const usual = id->pd;
  struct ibv_pd* const pd = ibv_alloc_pd(id->verbs);
  EXPECT(pd != NULL && pd != usual);
  create_srq(id, pd);
  EXPECT(id->srq->pd == pd);
  EXPECT(id->pd == usual);  // the domain of the queue is not that of the id
  EXPECT(ibv_dealloc_pd(pd) == EBUSY);
  rdma_destroy_ep(id);
  EXPECT(ibv_dealloc_pd(pd) == 0);
}

// An id is bound to a device by rdma_bind_addr(3), as here by the server, or rdma_resolve_addr(3).

static struct rdma_cm_id* refused_unbound(void) {
  struct rdma_cm_id* const of_all = id_of_all_addresses();
  refused(of_all, NULL, EINVAL);
  EXPECT(of_all->srq == NULL);
  EXPECT(rdma_destroy_id(of_all) == 0);
  struct rdma_cm_id* const id = unbound_id();
  refused(id, NULL, EINVAL);
  EXPECT(id->srq == NULL);
  return id;
}

static void create_bound(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = refused_unbound();
  struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE};
  struct rdma_addrinfo* info = NULL;
  EXPECT(rdma_getaddrinfo(side->host, NULL, &hints, &info) == 0);
  EXPECT(rdma_bind_addr(id, info->ai_src_addr) == 0);
  rdma_freeaddrinfo(info);
  create_srq(id, NULL);
  rdma_destroy_ep(id);
}

static void create_resolved(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = refused_unbound();
  struct rdma_addrinfo* info = NULL;
  EXPECT(rdma_getaddrinfo(side->host, side->ports[kReliable], NULL, &info) == 0);
  EXPECT(rdma_resolve_addr(id, NULL, info->ai_dst_addr, kMostMs) == 0);
  rdma_freeaddrinfo(info);
  create_srq(id, NULL);
  rdma_destroy_ep(id);
}

// An open device that is not that of the id: another one where this host has one, or the same
// device, opened again.
static struct ibv_context* other_context(struct rdma_cm_id* id, int* is_own) {
  int count = 0;
  struct ibv_context** const listed = rdma_get_devices(&count);
  EXPECT(listed != NULL && count > 0);
  struct ibv_context* other = NULL;
  for (int i = 0; i < count; ++i) {
    if (listed[i] != id->verbs) other = listed[i];
  }
  rdma_free_devices(listed);
  *is_own = other == NULL;
  if (other == NULL) other = ibv_open_device(id->verbs->device);
  EXPECT(other != NULL && other != id->verbs);
  return other;
}

static void create_in_domain_of_other_device(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  int is_own = 0;
  struct ibv_context* const other = other_context(id, &is_own);
  struct ibv_pd* const pd = ibv_alloc_pd(other);
  EXPECT(pd != NULL);
  refused(id, pd, EINVAL);
  EXPECT(id->srq == NULL);
  EXPECT(ibv_dealloc_pd(pd) == 0);
  if (is_own) EXPECT(ibv_close_device(other) == 0);
  create_srq(id, NULL);
  rdma_destroy_ep(id);
}

static void create_second(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_srq(id, NULL);
  struct ibv_srq* const first = id->srq;
  refused(id, NULL, EINVAL);
  EXPECT(id->srq == first);
  EXPECT(rdma_post_recvv(id, NULL, NULL, 0) == 0);
  rdma_destroy_srq(id);
  create_srq(id, NULL);  // one at a time
  rdma_destroy_ep(id);
}

static void create_with_attributes(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  struct ibv_srq_init_attr attributes = {.srq_context = &attributes, .attr = {.max_wr = 5}};
  EXPECT(rdma_create_srq(id, NULL, &attributes) == 0);
  EXPECT(id->srq->srq_context == &attributes);
  EXPECT(attributes.attr.max_wr >= 5);
  EXPECT(attributes.attr.max_sge >= 1);  // more than was asked for
  struct ibv_srq_attr there;
  EXPECT(ibv_query_srq(id->srq, &there) == 0);
  EXPECT(there.max_wr == attributes.attr.max_wr && there.max_sge == attributes.attr.max_sge);
  for (uint32_t i = 0; i < attributes.attr.max_wr; ++i) {
    EXPECT(rdma_post_recvv(id, NULL, NULL, 0) == 0);
  }
  errno = 0;
  EXPECT(rdma_post_recvv(id, NULL, NULL, 0) == -1 && errno == ENOMEM);
  rdma_destroy_ep(id);
}

static void create_too_large(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  struct ibv_device_attr device;
  EXPECT(ibv_query_device(id->verbs, &device) == 0);
  for (int i = 0; i < 4; ++i) {
    struct ibv_srq_init_attr attributes = usual_attributes();
    if (i == 2) id->qp_type = IBV_QPT_XRC_RECV;  // a completion queue that was made goes again
    if (i % 2 == 0) {
      attributes.attr.max_wr = (uint32_t)device.max_srq_wr + 1;
    } else {
      attributes.attr.max_sge = (uint32_t)device.max_srq_sge + 1;
    }
    errno = 0;
    EXPECT(rdma_create_srq(id, NULL, &attributes) == -1 && errno == EINVAL);
    EXPECT(id->srq == NULL && id->recv_cq == NULL && id->recv_cq_channel == NULL);
  }
  rdma_destroy_ep(id);
}

static void create_extended(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  struct ibv_srq_init_attr_ex attributes = {.attr = {.max_wr = 5}};
  errno = 0;
  EXPECT(rdma_create_srq_ex(id, &attributes) == -1 && errno == EINVAL);  // no type
  attributes.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  attributes.srq_type = IBV_SRQT_BASIC;
  EXPECT(rdma_create_srq_ex(id, &attributes) == 0);
  EXPECT(id->srq != NULL && id->srq->pd == id->pd && attributes.pd == id->pd);
  EXPECT(attributes.attr.max_wr >= 5 && attributes.attr.max_sge >= 1);
  errno = 0;
  EXPECT(rdma_create_srq_ex(id, &attributes) == -1 && errno == EINVAL);  // a second one
  rdma_destroy_ep(id);
}

// Messages.

static void send_messages(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kMessages][kBytes];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  connect_pair(id, NULL);
  for (unsigned i = 0; i < kMessages; ++i) {
    fill(memory[i], kBytes, kSeed + i);
    EXPECT(rdma_post_send(id, NULL, memory[i], kBytes, mr, IBV_SEND_SIGNALED) == 0);
  }
  for (int i = 0; i < kMessages; ++i) sent(id, IBV_WC_SUCCESS);
  deregister(mr);
  end_client(id);
}

static void receive_by_earlier_posts(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kMessages][kBytes];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_srq(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(id->qp == NULL);
  post_to(id, memory, mr);
  create_pair(id, NULL);
  EXPECT(id->qp->srq == id->srq);
  accept_request(id, NULL);
  receive_all(id, memory);
  await_disconnected(id);
  deregister(mr);
  rdma_destroy_qp(id);
  EXPECT(id->qp == NULL && id->recv_cq == NULL && id->send_cq == NULL && id->srq != NULL);
  rdma_destroy_ep(id);
}

// XRC, with a completion queue of the library or of the program.

enum { kOwnQueue = 1 };

static void create_extended_queue(struct rdma_cm_id* id, struct ibv_cq* completions) {
  if (completions != NULL) {
    struct ibv_srq_init_attr_ex attributes = {.attr = {.max_wr = kEntries, .max_sge = 1}};
    attributes.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ;
    attributes.srq_type = IBV_SRQT_XRC;
    attributes.cq = completions;
    EXPECT(rdma_create_srq_ex(id, &attributes) == 0);
    EXPECT(id->recv_cq == NULL && id->recv_cq_channel == NULL);
    EXPECT(ibv_destroy_cq(completions) == EBUSY);
    return;
  }
  create_srq(id, NULL);
  EXPECT(id->recv_cq != NULL && id->recv_cq_channel != NULL);
  EXPECT(id->recv_cq->channel == id->recv_cq_channel && id->recv_cq->cq_context == id);
  EXPECT(id->recv_cq->cqe >= kEntries);
}

static void receive_extended(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  struct rdma_cm_id* const id = next_request(side, kExtended);
  EXPECT(id->qp_type == IBV_QPT_XRC_RECV);
  create_pair(id, NULL);
  EXPECT(id->recv_cq == NULL && id->recv_cq_channel == NULL);
  struct ibv_cq* const own =
      variant == kOwnQueue ? ibv_create_cq(id->verbs, kEntries, NULL, NULL, 0) : NULL;
  create_extended_queue(id, own);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(rdma_post_recv(id, memory, memory, sizeof memory, mr) == 0);
  struct Offer offer = {0};
  EXPECT(ibv_get_srq_num(id->srq, &offer.srq_number) == 0);
  accept_request(id, &offer);
  struct ibv_wc completion;
  if (own != NULL) {
    while (ibv_poll_cq(own, 1, &completion) == 0) continue;
    EXPECT(completion.status == IBV_WC_SUCCESS);
  } else {
    completion = received(id, IBV_WC_SUCCESS);
  }
  EXPECT(completion.wr_id == (uintptr_t)memory && completion.byte_len == kBytes);
  EXPECT(matches(memory, 0, kBytes, kSeed));
  await_disconnected(id);
  deregister(mr);
  rdma_destroy_qp(id);
  EXPECT(id->srq != NULL && (id->recv_cq != NULL) == (own == NULL));  // a queue of the SRQ
  rdma_destroy_srq(id);
  EXPECT(id->srq == NULL && id->recv_cq == NULL && id->recv_cq_channel == NULL);
  EXPECT(rdma_destroy_id(id) == 0);
  if (own != NULL) EXPECT(ibv_destroy_cq(own) == 0);
}

static void send_extended(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBytes];
  fill(memory, kBytes, kSeed);
  struct rdma_cm_id* const id = resolved_id(side, kExtended);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  struct Offer offer;
  connect_pair(id, &offer);
  struct ibv_sge entry = {(uintptr_t)memory, kBytes, mr->lkey};
  struct ibv_send_wr request = {.sg_list = &entry, .num_sge = 1, .opcode = IBV_WR_SEND};
  request.send_flags = IBV_SEND_SIGNALED;
  request.qp_type.xrc.remote_srqn = offer.srq_number;
  struct ibv_send_wr* bad = NULL;
  EXPECT(ibv_post_send(id->qp, &request, &bad) == 0);
  sent(id, IBV_WC_SUCCESS);
  deregister(mr);
  end_client(id);
}

// Destruction.

static void destroy_unused(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  struct ibv_pd* const pd = ibv_alloc_pd(id->verbs);
  EXPECT(pd != NULL);
  id->qp_type = IBV_QPT_XRC_RECV;  // so that the library makes a completion queue
  create_srq(id, pd);
  EXPECT(id->recv_cq != NULL && id->recv_cq_channel != NULL);
  EXPECT(ibv_dealloc_pd(pd) == EBUSY);
  rdma_destroy_srq(id);
  EXPECT(id->srq == NULL && id->recv_cq == NULL && id->recv_cq_channel == NULL);
  EXPECT(ibv_dealloc_pd(pd) == 0);
  EXPECT(rdma_destroy_id(id) == 0);
}

enum Ending { kByDestroyQp, kByDestroyEp, kByDestroyId };

static void end_pair_of_queue(struct rdma_cm_id* id, struct ibv_pd* pd, enum Ending ending) {
  switch (ending) {
    case kByDestroyQp:
      rdma_destroy_qp(id);
      EXPECT(ibv_dealloc_pd(pd) == 0);
      EXPECT(id->recv_cq == NULL && id->send_cq == NULL);
      EXPECT(rdma_destroy_id(id) == 0);
      return;
    case kByDestroyEp:
      rdma_destroy_ep(id);
      EXPECT(ibv_dealloc_pd(pd) == 0);
      return;
    case kByDestroyId:
      EXPECT(ibv_destroy_qp(id->qp) == 0);
      id->qp = NULL;
      struct ibv_cq* const queues[] = {id->send_cq, id->recv_cq};
      struct ibv_comp_channel* const channels[] = {id->send_cq_channel, id->recv_cq_channel};
      EXPECT(ibv_dealloc_pd(pd) == EBUSY);  // the shared receive queue is left
      EXPECT(rdma_destroy_id(id) == 0);
      EXPECT(ibv_dealloc_pd(pd) == 0);
      for (int i = 0; i < 2; ++i) {
        EXPECT(ibv_destroy_cq(queues[i]) == 0);
        EXPECT(ibv_destroy_comp_channel(channels[i]) == 0);
      }
      return;
  }
}

static void destroy_in_use(const struct Side* side, int ending) {
  static unsigned char memory[kMessages][kBytes];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  struct ibv_pd* const pd = ibv_alloc_pd(id->verbs);
  EXPECT(pd != NULL);
  create_srq(id, pd);
  create_pair(id, pd);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL && mr->pd == pd);
  post_to(id, memory, mr);
  EXPECT(ibv_destroy_srq(id->srq) == EBUSY);
  rdma_destroy_srq(id);
  EXPECT(id->srq == NULL);
  accept_request(id, NULL);
  receive_all(id, memory);  // the queue pair has it still
  await_disconnected(id);
  deregister(mr);
  EXPECT(ibv_dealloc_pd(pd) == EBUSY);
  end_pair_of_queue(id, pd, (enum Ending)ending);
}

static void destroy_id_before_queue(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBytes];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_srq(id, NULL);
  struct ibv_srq* const srq = id->srq;
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(rdma_destroy_id(id) == 0);
  struct ibv_sge entry = {(uintptr_t)memory, kBytes, mr->lkey};
  struct ibv_recv_wr request = {.sg_list = &entry, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  EXPECT(ibv_post_srq_recv(srq, &request, &bad) == 0);
  struct ibv_srq_attr there;
  EXPECT(ibv_query_srq(srq, &there) == 0);
  EXPECT(ibv_destroy_srq(srq) == 0);
  deregister(mr);
}

const struct Check kSharedQueueChecks[] = {
    {"srq_default_domain", create_in_default_domain, create_in_default_domain, 0},
    {"srq_given_domain", create_in_given_domain, create_in_given_domain, 0},
    {"srq_unbound", create_bound, create_resolved, 0},
    {"srq_other_device", create_in_domain_of_other_device, create_in_domain_of_other_device, 0},
    {"srq_second", create_second, create_second, 0},
    {"srq_attributes", create_with_attributes, create_with_attributes, 0},
    {"srq_too_large", create_too_large, create_too_large, 0},
    {"srq_ex", create_extended, create_extended, 0},
    {"srq_receives", receive_by_earlier_posts, send_messages, 0},
    {"srq_xrc", receive_extended, send_extended, 0},
    {"srq_xrc_given_cq", receive_extended, send_extended, kOwnQueue},
    {"destroy_srq", destroy_unused, destroy_unused, 0},
    {"destroy_srq_and_qp", destroy_in_use, send_messages, kByDestroyQp},
    {"destroy_srq_and_ep", destroy_in_use, send_messages, kByDestroyEp},
    {"destroy_srq_and_id", destroy_in_use, send_messages, kByDestroyId},
    {"destroy_id_with_srq", destroy_id_before_queue, destroy_id_before_queue, 0},
    {0}};
