// SPDX-License-Identifier: BSD-2-Clause
// Do the inline functions of <rdma/rdma_verbs.h> post and complete as their manual pages say?
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "side.h"

enum { kBytes = 6000, kThird = kBytes / 3, kSeed = 5, kGrhBytes = 40, kDatagram = 1000 };

static struct ibv_sge part_of(const struct ibv_mr* mr, size_t offset, uint32_t length) {
  const struct ibv_sge entry = {(uintptr_t)mr->addr + offset, length, mr->lkey};
  return entry;
}

// rdma_post_send(3), rdma_post_write(3): inline, memory needs no registration.

static void receive_inline(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kInline], target[kInline];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  struct ibv_mr* const written = rdma_reg_write(id, target, sizeof target);
  EXPECT(mr != NULL && written != NULL);
  EXPECT(rdma_post_recv(id, memory, memory, sizeof memory, mr) == 0);
  const struct Offer offer = {.targets = {{(uintptr_t)target, written->rkey}}};
  accept_request(id, &offer);
  const struct ibv_wc completion = received(id, IBV_WC_SUCCESS);
  EXPECT(completion.wr_id == (uintptr_t)memory && completion.byte_len == kInline);
  EXPECT(completion.opcode == IBV_WC_RECV);
  EXPECT(matches(memory, 0, kInline, kSeed));
  EXPECT(matches(target, 0, kInline, kSeed + 1));  // written before the message was sent
  await_disconnected(id);
  deregister(mr);
  deregister(written);
  rdma_destroy_ep(id);
}

static void send_inline(const struct Side* side, int variant) {
  (void)variant;
  unsigned char memory[kInline];
  const int flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  struct Offer offer;
  connect_pair(id, &offer);
  fill(memory, sizeof memory, kSeed + 1);
  EXPECT(rdma_post_write(id, &offer, memory, sizeof memory, NULL, flags, offer.targets[0].address,
                         offer.targets[0].rkey) == 0);
  fill(memory, sizeof memory, kSeed);  // an inline post has copied
  EXPECT(rdma_post_send(id, memory, memory, sizeof memory, NULL, flags) == 0);
  memset(memory, 0, sizeof memory);
  const struct ibv_wc write = sent(id, IBV_WC_SUCCESS);
  EXPECT(write.wr_id == (uintptr_t)&offer && write.opcode == IBV_WC_RDMA_WRITE);
  const struct ibv_wc send = sent(id, IBV_WC_SUCCESS);
  EXPECT(send.wr_id == (uintptr_t)memory && send.opcode == IBV_WC_SEND);
  end_client(id);
}

// Vectors: the client writes, reads and sends in thirds, in an order that is not that of memory.

static void serve_vectors(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBytes], target[kBytes], source[kBytes];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  fill(source, sizeof source, kSeed + 2);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  struct ibv_mr* const written = rdma_reg_write(id, target, sizeof target);
  struct ibv_mr* const read = rdma_reg_read(id, source, sizeof source);
  EXPECT(mr != NULL && written != NULL && read != NULL);
  struct ibv_sge entries[] = {part_of(mr, kThird, 2 * kThird), part_of(mr, 0, kThird)};
  EXPECT(rdma_post_recvv(id, memory, entries, 2) == 0);
  const struct Offer offer = {
      .targets = {{(uintptr_t)target, written->rkey}, {(uintptr_t)source, read->rkey}}};
  accept_request(id, &offer);
  const struct ibv_wc completion = received(id, IBV_WC_SUCCESS);
  EXPECT(completion.wr_id == (uintptr_t)memory && completion.byte_len == kBytes);
  unsigned char wanted[kBytes];
  fill(wanted, sizeof wanted, kSeed);
  EXPECT(memcmp(target, wanted + kThird, 2 * kThird) == 0);  // the entries of the client
  EXPECT(memcmp(target + 2 * kThird, wanted, kThird) == 0);
  EXPECT(matches(memory, 0, kBytes, kSeed));  // twice out of order
  await_disconnected(id);
  deregister(mr);
  deregister(written);
  deregister(read);
  rdma_destroy_ep(id);
}

static void post_vectors(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kBytes], landing[kBytes];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  fill(memory, sizeof memory, kSeed);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  struct ibv_mr* const landed = rdma_reg_msgs(id, landing, sizeof landing);
  EXPECT(mr != NULL && landed != NULL);
  struct Offer offer;
  connect_pair(id, &offer);
  struct ibv_sge entries[] = {part_of(mr, kThird, kThird), part_of(mr, 2 * kThird, kThird),
                              part_of(mr, 0, kThird)};
  struct ibv_sge landings[] = {part_of(landed, 2 * kThird, kThird), part_of(landed, 0, 2 * kThird)};
  EXPECT(rdma_post_writev(id, memory, entries, 3, IBV_SEND_SIGNALED, offer.targets[0].address,
                          offer.targets[0].rkey) == 0);
  EXPECT(rdma_post_readv(id, landing, landings, 2, IBV_SEND_SIGNALED, offer.targets[1].address,
                         offer.targets[1].rkey) == 0);
  EXPECT(rdma_post_sendv(id, entries, entries, 3, IBV_SEND_SIGNALED) == 0);
  const struct ibv_wc write = sent(id, IBV_WC_SUCCESS);
  EXPECT(write.wr_id == (uintptr_t)memory && write.opcode == IBV_WC_RDMA_WRITE);
  const struct ibv_wc read = sent(id, IBV_WC_SUCCESS);
  EXPECT(read.wr_id == (uintptr_t)landing && read.opcode == IBV_WC_RDMA_READ);
  const struct ibv_wc send = sent(id, IBV_WC_SUCCESS);
  EXPECT(send.wr_id == (uintptr_t)entries && send.opcode == IBV_WC_SEND);
  unsigned char wanted[kBytes];
  fill(wanted, sizeof wanted, kSeed + 2);
  EXPECT(memcmp(landing + 2 * kThird, wanted, kThird) == 0);
  EXPECT(memcmp(landing, wanted + kThird, 2 * kThird) == 0);
  deregister(mr);
  deregister(landed);
  end_client(id);
}

// Errors are -1 with errno.

static void accept_refused_posts(const struct Side* side, int variant) {
  (void)variant;
  end_server(next_connected(side));
}

static void post_refused(const struct Side* side, int variant) {
  (void)variant;
  static struct ibv_sge entries[kSges + 1];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  connect_pair(id, NULL);
  struct ibv_qp_attr attributes;
  struct ibv_qp_init_attr made;
  EXPECT(ibv_query_qp(id->qp, &attributes, IBV_QP_CAP, &made) == 0);
  EXPECT(made.cap.max_send_sge == kSges && made.cap.max_recv_sge == kSges);
  errno = 0;
  EXPECT(rdma_post_recvv(id, NULL, entries, kSges + 1) == -1 && errno == EINVAL);
  errno = 0;
  EXPECT(rdma_post_sendv(id, NULL, entries, kSges + 1, 0) == -1 && errno == EINVAL);
  errno = 0;
  EXPECT(rdma_post_readv(id, NULL, entries, kSges + 1, 0, 0, 0) == -1 && errno == EINVAL);
  errno = 0;
  EXPECT(rdma_post_writev(id, NULL, entries, kSges + 1, 0, 0, 0) == -1 && errno == EINVAL);
  for (uint32_t i = 0; i < made.cap.max_recv_wr; ++i) {
    EXPECT(rdma_post_recvv(id, NULL, NULL, 0) == 0);
  }
  errno = 0;
  EXPECT(rdma_post_recvv(id, NULL, NULL, 0) == -1 && errno == ENOMEM);
  end_client(id);
}

// rdma_post_ud_send(3): one packet.

static void receive_datagram(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kGrhBytes + kDatagram];
  struct rdma_cm_id* const id = next_request(side, kDatagrams);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(rdma_post_recv(id, memory, memory, sizeof memory, mr) == 0);
  EXPECT(rdma_accept(id, NULL) == 0);
  const struct ibv_wc completion = received(id, IBV_WC_SUCCESS);
  EXPECT(completion.wr_id == (uintptr_t)memory && completion.byte_len == sizeof memory);
  EXPECT((completion.wc_flags & IBV_WC_GRH) != 0);
  EXPECT(matches(memory + kGrhBytes, 0, kDatagram, kSeed));
  deregister(mr);
  rdma_destroy_ep(id);
}

static void send_datagram(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[kDatagram];
  fill(memory, sizeof memory, kSeed);
  struct rdma_cm_id* const id = resolved_id(side, kDatagrams);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  connect_pair(id, NULL);
  struct rdma_ud_param* const peer = &id->event->param.ud;
  EXPECT(peer->qkey == RDMA_UDP_QKEY);
  struct ibv_ah* const handle = ibv_create_ah(id->pd, &peer->ah_attr);
  EXPECT(handle != NULL);
  EXPECT(rdma_post_ud_send(id, memory, memory, sizeof memory, mr, IBV_SEND_SIGNALED, handle,
                           peer->qp_num) == 0);
  EXPECT(sent(id, IBV_WC_SUCCESS).wr_id == (uintptr_t)memory);
  EXPECT(ibv_destroy_ah(handle) == 0);
  deregister(mr);
  rdma_destroy_ep(id);
}

// rdma_get_send_comp(3), rdma_get_recv_comp(3): both block or not as their channels do.

static void expect_none(struct rdma_cm_id* id) {
  struct ibv_wc completion;
  const int receive_flags = fcntl(id->recv_cq_channel->fd, F_GETFL);
  const int send_flags = fcntl(id->send_cq_channel->fd, F_GETFL);
  EXPECT(fcntl(id->recv_cq_channel->fd, F_SETFL, receive_flags | O_NONBLOCK) == 0);
  EXPECT(fcntl(id->send_cq_channel->fd, F_SETFL, send_flags | O_NONBLOCK) == 0);
  errno = 0;
  EXPECT(rdma_get_recv_comp(id, &completion) == -1 && errno == EAGAIN);
  errno = 0;
  EXPECT(rdma_get_send_comp(id, &completion) == -1 && errno == EAGAIN);
  EXPECT(fcntl(id->recv_cq_channel->fd, F_SETFL, receive_flags) == 0);
  EXPECT(fcntl(id->send_cq_channel->fd, F_SETFL, send_flags) == 0);
}

enum { kTurns = 20 };

static void take_turns(struct rdma_cm_id* id, int begins, unsigned char* memory,
                       struct ibv_mr* mr) {
  for (uintptr_t i = 0; i < kTurns; ++i) {
    if (begins || i != 0) {
      memory[1] = (unsigned char)i;
      EXPECT(rdma_post_send(id, (void*)i, memory + 1, 1, mr, IBV_SEND_SIGNALED) == 0);
      EXPECT(sent(id, IBV_WC_SUCCESS).wr_id == i);
    }
    EXPECT(received(id, IBV_WC_SUCCESS).wr_id == i);
    EXPECT(memory[0] == (begins ? i + 1 : i));
    EXPECT(rdma_post_recv(id, (void*)(i + 1), memory, 1, mr) == 0);
  }
  if (!begins) {
    memory[1] = kTurns;
    EXPECT(rdma_post_send(id, NULL, memory + 1, 1, mr, IBV_SEND_SIGNALED) == 0);
    sent(id, IBV_WC_SUCCESS);
  }
}

static void complete_as_server(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[2];
  struct rdma_cm_id* const id = next_request(side, kReliable);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(rdma_post_recv(id, NULL, memory, 1, mr) == 0);
  expect_none(id);
  accept_request(id, NULL);
  take_turns(id, 0, memory, mr);
  await_disconnected(id);
  deregister(mr);
  rdma_destroy_ep(id);
}

static void complete_as_client(const struct Side* side, int variant) {
  (void)variant;
  static unsigned char memory[2];
  struct rdma_cm_id* const id = resolved_id(side, kReliable);
  create_pair(id, NULL);
  struct ibv_mr* const mr = rdma_reg_msgs(id, memory, sizeof memory);
  EXPECT(mr != NULL);
  EXPECT(rdma_post_recv(id, NULL, memory, 1, mr) == 0);
  connect_pair(id, NULL);
  expect_none(id);
  take_turns(id, 1, memory, mr);
  deregister(mr);
  end_client(id);
}

const struct Check kPostChecks[] = {{"post_inline", receive_inline, send_inline, 0},
                                    {"post_vectors", serve_vectors, post_vectors, 0},
                                    {"post_refused", accept_refused_posts, post_refused, 0},
                                    {"post_ud_send", receive_datagram, send_datagram, 0},
                                    {"get_comp", complete_as_server, complete_as_client, 0},
                                    {0}};
