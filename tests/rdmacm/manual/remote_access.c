// SPDX-License-Identifier: BSD-2-Clause
// Which regions may a peer read and write? (rdma_reg_msgs(3), rdma_reg_read(3), rdma_reg_write(3))
#include <string.h>

#include "side.h"

enum { kBytes = 10000, kEdge = 100, kServerSeed = 11, kClientSeed = 90 };

enum Call { kRegMsgs, kRegRead, kRegWrite };
enum Operation { kRead, kWrite, kOperations };
enum { kVariants = kOperations };  // call * kVariants + operation

static enum Call call_of(int variant) { return (enum Call)(variant / kVariants); }
static enum Operation operation_of(int variant) { return (enum Operation)(variant % kVariants); }
static int is_allowed(int variant) {
  return call_of(variant) == (operation_of(variant) == kRead ? kRegRead : kRegWrite);
}

static struct ibv_mr* register_by(enum Call call, struct rdma_cm_id* id, void* memory,
                                  size_t length) {
  struct ibv_mr* mr = NULL;
  switch (call) {
    case kRegMsgs:
      mr = rdma_reg_msgs(id, memory, length);
      break;
    case kRegRead:
      mr = rdma_reg_read(id, memory, length);
      break;
    case kRegWrite:
      mr = rdma_reg_write(id, memory, length);
      break;
  }
  EXPECT(mr != NULL);
  EXPECT(mr->pd == id->pd && mr->context == id->verbs);
  EXPECT(mr->addr == memory && mr->length == length);
  return mr;
}

static struct Offer offer_of(const struct ibv_mr* mr) {
  const struct Offer offer = {.targets = {{(uintptr_t)mr->addr, mr->rkey}}};
  return offer;
}

static void start(struct rdma_cm_id* id, enum Operation operation, void* memory, size_t length,
                  struct ibv_mr* mr, uint64_t address, uint32_t rkey) {
  EXPECT((operation == kRead
              ? rdma_post_read(id, NULL, memory, length, mr, IBV_SEND_SIGNALED, address, rkey)
              : rdma_post_write(id, NULL, memory, length, mr, IBV_SEND_SIGNALED, address, rkey)) ==
         0);
}

// The whole region.

static void offer_region(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  fill(memory, kBytes, kServerSeed);
  struct ibv_mr* const mr = register_by(call_of(variant), id, memory, kBytes);
  const struct Offer offer = offer_of(mr);
  accept_request(id, &offer);
  await_disconnected(id);
  const int is_written = operation_of(variant) == kWrite && is_allowed(variant);
  EXPECT(matches(memory, 0, kBytes, is_written ? kClientSeed : kServerSeed));
  deregister(mr);
  rdma_destroy_ep(id);
}

// The own memory of either operation is that of rdma_reg_msgs(3).
static void access_region(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  fill(memory, kBytes, kClientSeed);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, kBytes);
  EXPECT(mr != NULL);
  struct Offer offer;
  connect_pair(id, &offer);
  start(id, operation_of(variant), memory, kBytes, mr, offer.targets[0].address,
        offer.targets[0].rkey);
  sent(id, is_allowed(variant) ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
  const int is_read = operation_of(variant) == kRead && is_allowed(variant);
  EXPECT(matches(memory, 0, kBytes, is_read ? kServerSeed : kClientSeed));
  deregister(mr);
  end_client(id);
}

// Its edges. The region is in the middle of memory, so that there are bytes beside it.

struct Range {
  int offset;  // into the region
  unsigned length;
  enum ibv_wc_status status;
};
enum { kMiddle = kBytes - 2 * kEdge };
static const struct Range kRanges[] = {
    {0, 1, IBV_WC_SUCCESS},
    {kMiddle - 1, 1, IBV_WC_SUCCESS},
    {-1, 1, IBV_WC_REM_ACCESS_ERR},
    {-1, 2, IBV_WC_REM_ACCESS_ERR},
    {kMiddle, 1, IBV_WC_REM_ACCESS_ERR},
    {0, kMiddle + 1, IBV_WC_REM_ACCESS_ERR},
};
enum { kNumberOfRanges = sizeof kRanges / sizeof kRanges[0] };

static void offer_middle(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  fill(memory, kBytes, kServerSeed);
  for (int i = 0; i < kNumberOfRanges; ++i) {
    struct rdma_cm_id* const id = next_request(side, kReliable);
    create_pair(id, NULL);
    struct ibv_mr* const mr = register_by(call_of(variant), id, memory + kEdge, kMiddle);
    const struct Offer offer = offer_of(mr);
    accept_request(id, &offer);
    await_disconnected(id);
    deregister(mr);
    rdma_destroy_ep(id);
  }
  static unsigned char wanted[kBytes];
  fill(wanted, kBytes, kServerSeed);
  if (operation_of(variant) == kWrite) {
    wanted[kEdge] = wanted[kEdge + kMiddle - 1] = kClientSeed;
  }
  EXPECT(memcmp(memory, wanted, kBytes) == 0);
}

static void access_edges(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  static unsigned char there[kBytes];
  fill(there, kBytes, kServerSeed);
  for (int i = 0; i < kNumberOfRanges; ++i) {
    const struct Range range = kRanges[i];
    struct rdma_cm_id* const id = resolved_id(side, kReliable);
    create_pair(id, NULL);
    memory[0] = kClientSeed;
    struct ibv_mr* const mr = rdma_reg_msgs(id, memory, kBytes);
    EXPECT(mr != NULL);
    struct Offer offer;
    connect_pair(id, &offer);
    start(id, operation_of(variant), memory, range.length, mr,
          offer.targets[0].address + (uint64_t)(int64_t)range.offset, offer.targets[0].rkey);
    sent(id, range.status);
    const int is_read = operation_of(variant) == kRead && range.status == IBV_WC_SUCCESS;
    EXPECT(memory[0] == (is_read ? there[kEdge + range.offset] : kClientSeed));
    deregister(mr);
    end_client(id);
  }
}

// After rdma_dereg_mr(3).

static void deregister_region(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  static unsigned char message[1];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  fill(memory, kBytes, kServerSeed);
  struct ibv_mr* const mr = register_by(call_of(variant), id, memory, kBytes);
  struct ibv_mr* const messages = rdma_reg_msgs(id, message, sizeof message);
  EXPECT(messages != NULL);
  EXPECT(rdma_post_recv(id, NULL, message, sizeof message, messages) == 0);
  const struct Offer offer = offer_of(mr);
  accept_request(id, &offer);
  received(id, IBV_WC_SUCCESS);
  deregister(mr);
  EXPECT(rdma_post_send(id, NULL, message, sizeof message, messages, IBV_SEND_SIGNALED) == 0);
  sent(id, IBV_WC_SUCCESS);
  await_disconnected(id);
  EXPECT(matches(memory, 1, kBytes, kServerSeed));  // the first byte may be written before
  deregister(messages);
  rdma_destroy_ep(id);
}

static void access_deregistered(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  fill(memory, kBytes, kClientSeed);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, kBytes);
  EXPECT(mr != NULL);
  EXPECT(rdma_post_recv(id, NULL, memory, 1, mr) == 0);
  struct Offer offer;
  connect_pair(id, &offer);
  const struct Target target = offer.targets[0];
  start(id, operation_of(variant), memory, 1, mr, target.address, target.rkey);
  sent(id, IBV_WC_SUCCESS);
  EXPECT(rdma_post_send(id, NULL, memory, 1, mr, IBV_SEND_SIGNALED) == 0);
  sent(id, IBV_WC_SUCCESS);
  received(id, IBV_WC_SUCCESS);
  start(id, operation_of(variant), memory + 1, kBytes - 1, mr, target.address + 1, target.rkey);
  sent(id, IBV_WC_REM_ACCESS_ERR);
  EXPECT(matches(memory, 1, kBytes, kClientSeed));
  deregister(mr);
  end_client(id);
}

// A region of the device's default protection domain, and a queue pair of another one.

static void offer_other_domain(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  fill(memory, kBytes, kServerSeed);
  struct ibv_mr* const mr = register_by(call_of(variant), id, memory, kBytes);
  struct ibv_pd* const pd = ibv_alloc_pd(id->verbs);
  EXPECT(pd != NULL && pd != id->pd);
  create_pair(id, pd);
  EXPECT(id->pd == pd && mr->pd != pd);
  struct ibv_mr* const same = register_by(call_of(variant), id, memory, 1);
  const struct Offer offer = {
      .targets = {{(uintptr_t)memory, mr->rkey}, {(uintptr_t)memory, same->rkey}}};
  accept_request(id, &offer);
  await_disconnected(id);
  EXPECT(matches(memory, 1, kBytes, kServerSeed));
  deregister(same);
  deregister(mr);
  rdma_destroy_ep(id);
  EXPECT(ibv_dealloc_pd(pd) == 0);
}

static void access_other_domain(const struct Side* side, int variant) {
  static unsigned char memory[kBytes];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  fill(memory, kBytes, kClientSeed);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, kBytes);
  EXPECT(mr != NULL);
  struct Offer offer;
  connect_pair(id, &offer);
  start(id, operation_of(variant), memory, 1, mr, offer.targets[1].address, offer.targets[1].rkey);
  sent(id, IBV_WC_SUCCESS);
  start(id, operation_of(variant), memory + 1, kBytes - 1, mr, offer.targets[0].address + 1,
        offer.targets[0].rkey);
  sent(id, IBV_WC_REM_ACCESS_ERR);
  EXPECT(matches(memory, 1, kBytes, kClientSeed));
  deregister(mr);
  end_client(id);
}

#define VARIANT(call, operation) ((call)*kVariants + (operation))

const struct Check kRemoteAccessChecks[] = {
    {"read_of_reg_msgs", offer_region, access_region, VARIANT(kRegMsgs, kRead)},
    {"write_of_reg_msgs", offer_region, access_region, VARIANT(kRegMsgs, kWrite)},
    {"read_of_reg_read", offer_region, access_region, VARIANT(kRegRead, kRead)},
    {"write_of_reg_read", offer_region, access_region, VARIANT(kRegRead, kWrite)},
    {"read_of_reg_write", offer_region, access_region, VARIANT(kRegWrite, kRead)},
    {"write_of_reg_write", offer_region, access_region, VARIANT(kRegWrite, kWrite)},
    {"reg_read_edges", offer_middle, access_edges, VARIANT(kRegRead, kRead)},
    {"reg_write_edges", offer_middle, access_edges, VARIANT(kRegWrite, kWrite)},
    {"reg_read_deregistered", deregister_region, access_deregistered, VARIANT(kRegRead, kRead)},
    {"reg_write_deregistered", deregister_region, access_deregistered, VARIANT(kRegWrite, kWrite)},
    {"reg_read_domain", offer_other_domain, access_other_domain, VARIANT(kRegRead, kRead)},
    {"reg_write_domain", offer_other_domain, access_other_domain, VARIANT(kRegWrite, kWrite)},
    {0}};
