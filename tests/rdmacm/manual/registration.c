// SPDX-License-Identifier: BSD-2-Clause
// How is memory of messages registered, used and deregistered? (rdma_reg_msgs(3), rdma_dereg_mr(3))
#include <errno.h>
#include <sys/mman.h>

#include "side.h"

enum { kBuffers = 4, kBufferBytes = 3000, kArrayBytes = kBuffers * kBufferBytes, kSeed = 40 };

// An array of buffers, one region.

static void receive_into_array(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char array[kBuffers][kBufferBytes];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, array, sizeof array);
  EXPECT(mr != NULL && mr->addr == (void*)array && mr->length == sizeof array);
  for (int i = 0; i < kBuffers; ++i) {
    EXPECT(rdma_post_recv(id, &array[i], array[i], kBufferBytes, mr) == 0);
  }
  accept_request(id, NULL);
  for (unsigned i = 0; i < kBuffers; ++i) {
    const struct ibv_wc completion = received(id, IBV_WC_SUCCESS);
    EXPECT(completion.wr_id == (uintptr_t)&array[i] && completion.byte_len == kBufferBytes - i);
    EXPECT(matches(array[i], 0, kBufferBytes - i, kSeed + i));
  }
  await_disconnected(id);
  deregister(mr);
  rdma_destroy_ep(id);
}

static void send_from_array(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char array[kBuffers][kBufferBytes];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, array, sizeof array);
  EXPECT(mr != NULL && mr->addr == (void*)array && mr->length == sizeof array);
  connect_pair(id, NULL);
  for (unsigned i = 0; i < kBuffers; ++i) {
    fill(array[i], kBufferBytes, kSeed + i);
    EXPECT(rdma_post_send(id, &array[i], array[i], kBufferBytes - i, mr, IBV_SEND_SIGNALED) == 0);
  }
  for (int i = 0; i < kBuffers; ++i) {
    EXPECT(sent(id, IBV_WC_SUCCESS).wr_id == (uintptr_t)&array[i]);
  }
  deregister(mr);
  end_client(id);
}

// Messages that are not within the region, each over a connection of its own. rdma_post_recv(3)
// asserts that its buffer is, so that receives are posted as vectors.

enum { kEdge = 16, kMiddle = kBufferBytes - 2 * kEdge };

struct Range {
  int offset;
  uint32_t length;
};
static const struct Range kOutside[] = {{-1, 2}, {kMiddle - 1, 2}, {kMiddle, 1}, {-1, kMiddle + 1}};
enum { kNumberOutside = sizeof kOutside / sizeof kOutside[0] };

static struct ibv_sge entry_of(const struct ibv_mr* mr, struct Range range) {
  const struct ibv_sge entry = {(uintptr_t)mr->addr + (uint64_t)(int64_t)range.offset, range.length,
                                mr->lkey};
  return entry;
}

static void receive_outside(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBufferBytes];
  fill(memory, sizeof memory, kSeed);
  for (int i = 0; i < kNumberOutside; ++i) {
    struct rdma_cm_id* id = next_request(side, kReliable);
    create_pair(id, NULL);
    struct ibv_mr* const mr = rdma_reg_msgs(id, memory + kEdge, kMiddle);
    EXPECT(mr != NULL);
    struct ibv_sge entry = entry_of(mr, kOutside[i]);
    EXPECT(rdma_post_recvv(id, NULL, &entry, 1) == 0);
    accept_request(id, NULL);
    received(id, IBV_WC_LOC_PROT_ERR);
    await_disconnected(id);
    deregister(mr);
    rdma_destroy_ep(id);
    EXPECT(memory[kEdge - 1] == (unsigned char)(kSeed + (kEdge - 1) * 7));
    end_server(next_connected(side));  // the client sends from outside
  }
}

static void send_outside(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBufferBytes];
  for (int i = 0; i < kNumberOutside; ++i) {
    const struct Range range = kOutside[i];
    struct rdma_cm_id* id = resolved_id(side, kReliable);
    create_pair(id, NULL);
    struct ibv_mr* const mr = rdma_reg_msgs(id, memory + kEdge, kMiddle);
    EXPECT(mr != NULL);
    connect_pair(id, NULL);
    EXPECT(rdma_post_send(id, NULL, mr->addr, range.length <= kMiddle ? range.length : kMiddle, mr,
                          IBV_SEND_SIGNALED) == 0);
    sent(id, IBV_WC_REM_OP_ERR);
    end_client(id);
    id = resolved_id(side, kReliable);
    create_pair(id, NULL);
    connect_pair(id, NULL);
    EXPECT(rdma_post_send(id, NULL, (char*)mr->addr + range.offset, range.length, mr,
                          IBV_SEND_SIGNALED) == 0);
    sent(id, IBV_WC_LOC_PROT_ERR);
    deregister(mr);
    end_client(id);
  }
}

// Memory that is not registered: never, any more, or not in the id's protection domain.

static void receive_nothing(const struct Side* side, int variant) {
  (void)variant;
  for (int i = 0; i < 3; ++i) end_server(next_connected(side));
}

static void send_unregistered(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBufferBytes];
  for (int i = 0; i < 3; ++i) {
    struct rdma_cm_id* const id = resolved_id(side, kReliable);
    create_pair(id, NULL);
    connect_pair(id, NULL);
    struct ibv_sge entry = {(uintptr_t)memory, sizeof memory, 0};
    if (i == 0) {
      EXPECT(rdma_post_send(id, NULL, memory, sizeof memory, NULL, IBV_SEND_SIGNALED) == 0);
    } else {
      struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
      EXPECT(mr != NULL);
      entry.lkey = mr->lkey;
      deregister(mr);
      EXPECT(i == 1 ? rdma_post_sendv(id, NULL, &entry, 1, IBV_SEND_SIGNALED) == 0
                    : rdma_post_writev(id, NULL, &entry, 1, IBV_SEND_SIGNALED, 0, 0) == 0);
    }
    sent(id, IBV_WC_LOC_PROT_ERR);
    end_client(id);
  }
}

static void receive_first(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBufferBytes];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(rdma_post_recv(id, NULL, memory, sizeof memory, mr) == 0);
  accept_request(id, NULL);
  received(id, IBV_WC_SUCCESS);
  EXPECT(matches(memory, 0, sizeof memory, kSeed));
  await_disconnected(id);
  deregister(mr);
  rdma_destroy_ep(id);
}

static void send_from_two_domains(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBufferBytes];
  fill(memory, sizeof memory, kSeed);
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  struct ibv_mr* const of_default = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(of_default != NULL && of_default->pd == id->pd);
  struct ibv_pd* const pd = ibv_alloc_pd(id->verbs);
  EXPECT(pd != NULL && pd != id->pd);
  create_pair(id, pd);
  EXPECT(id->pd == pd);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL && mr->pd == pd);
  EXPECT(ibv_dealloc_pd(pd) == EBUSY);
  connect_pair(id, NULL);
  EXPECT(rdma_post_send(id, NULL, memory, sizeof memory, mr, IBV_SEND_SIGNALED) == 0);
  sent(id, IBV_WC_SUCCESS);
  EXPECT(rdma_post_send(id, NULL, memory, 1, of_default, IBV_SEND_SIGNALED) == 0);
  sent(id, IBV_WC_LOC_PROT_ERR);
  deregister(mr);
  deregister(of_default);
  end_client(id);
  EXPECT(ibv_dealloc_pd(pd) == 0);
}

// Failures.

typedef struct ibv_mr* (*Register)(struct rdma_cm_id* id, void* memory, size_t length);
static const Register kCalls[] = {rdma_reg_msgs, rdma_reg_read, rdma_reg_write};
enum { kNumberOfCalls = sizeof kCalls / sizeof kCalls[0] };

static void register_unbound(const struct Side* side, int variant) {
  (void)side;
  (void)variant;
  char memory[16];
  struct rdma_cm_id* const ids[] = {unbound_id(), id_of_all_addresses()};
  for (int i = 0; i < 2 * kNumberOfCalls; ++i) {
    errno = 0;
    EXPECT(kCalls[i / 2](ids[i % 2], memory, sizeof memory) == NULL && errno == EINVAL);
  }
  EXPECT(rdma_destroy_id(ids[0]) == 0 && rdma_destroy_id(ids[1]) == 0);
}

static void register_unmapped(const struct Side* side, int variant) {
  (void)variant;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  void* const memory = mmap(NULL, kArrayBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(memory != MAP_FAILED);
  EXPECT(munmap(memory, kArrayBytes) == 0);
  for (int i = 0; i < kNumberOfCalls; ++i) {
    errno = 0;
    EXPECT(kCalls[i](id, memory, kArrayBytes) == NULL && errno == EFAULT);
  }
  EXPECT(rdma_destroy_id(id) == 0);
}

static void deregister_twice(const struct Side* side, int variant) {
  (void)variant;
  static char memory[kBufferBytes];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  for (int i = 0; i < kNumberOfCalls; ++i) {
    struct ibv_mr* const mr = kCalls[i](id, memory, sizeof memory);
    EXPECT(mr != NULL);
    mr->handle ^= 1;  // no region of the device
    errno = 0;
    EXPECT(rdma_dereg_mr(mr) == -1 && errno != 0);
    mr->handle ^= 1;
    EXPECT(rdma_dereg_mr(mr) == 0);
  }
  EXPECT(rdma_destroy_id(id) == 0);
}

// Regions that outlive their id: the client destroys the id first, and then uses both from another
// one.

static void serve_region_of_the_past(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBufferBytes];
  fill(memory, sizeof memory, kSeed);
  struct rdma_cm_id* former = resolved_id(side, kReliable);
  struct ibv_mr* const mr = rdma_reg_read(former, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(rdma_destroy_id(former) == 0);
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  EXPECT(id->pd == mr->pd);
  const struct Offer offer = {.targets = {{(uintptr_t)mr->addr, mr->rkey}}};
  accept_request(id, &offer);
  end_server(id);
  deregister(mr);
}

static void use_region_of_the_past(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBufferBytes];
  struct rdma_cm_id* id = resolved_id(side, kReliable);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(rdma_destroy_id(id) == 0);
  // Its protection domain is there without any id, too.
  struct ibv_mr* const more = ibv_reg_mr(mr->pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  EXPECT(more != NULL);
  deregister(more);
  id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  EXPECT(id->pd == mr->pd);
  struct Offer offer;
  connect_pair(id, &offer);
  EXPECT(rdma_post_read(id, NULL, memory, sizeof memory, mr, IBV_SEND_SIGNALED,
                        offer.targets[0].address, offer.targets[0].rkey) == 0);
  sent(id, IBV_WC_SUCCESS);
  EXPECT(matches(memory, 0, sizeof memory, kSeed));
  end_client(id);
  deregister(mr);
}

const struct Check kRegistrationChecks[] = {
    {"reg_msgs_array", receive_into_array, send_from_array, 0},
    {"reg_msgs_edges", receive_outside, send_outside, 0},
    {"reg_msgs_unregistered", receive_nothing, send_unregistered, 0},
    {"reg_msgs_domain", receive_first, send_from_two_domains, 0},
    {"reg_unbound", register_unbound, register_unbound, 0},
    {"reg_unmapped", register_unmapped, register_unmapped, 0},
    {"dereg_mr", deregister_twice, deregister_twice, 0},
    {"destroy_id_with_region", serve_region_of_the_past, use_region_of_the_past, 0},
    {0}};
