// SPDX-License-Identifier: BSD-2-Clause
// How do the two processes of the manual's test meet, and what do its checks stand on?
#pragma once

#include <rdma/rdma_verbs.h>
#include <stddef.h>
#include <stdint.h>

// Ends the program with a sentence where a check does not hold.
#define EXPECT(holds) expect((holds) != 0, #holds, __FILE__, __LINE__)
void expect(int holds, const char* text, const char* file, int line);

// Kinds of connections; the server listens for each.
enum Service { kReliable, kExtended, kDatagrams, kServices };

enum { kEntries = 8, kSges = 4, kInline = 64, kPortText = 8 };

// One of the two processes.
struct Side {
  const char* host;                         // the server's address
  char ports[kServices][kPortText];         // on which it listens
  struct rdma_cm_id* listeners[kServices];  // of the server only
};

// A check: what either process does. Connections are made in the same order by both.
typedef void (*Part)(const struct Side* side, int variant);
struct Check {
  const char* name;
  Part server;
  Part client;
  int variant;
};
// The checks of each source end with one without a name.
extern const struct Check kRegistrationChecks[];
extern const struct Check kRemoteAccessChecks[];
extern const struct Check kSharedQueueChecks[];
extern const struct Check kPostChecks[];

// A region of the server for accesses of the client. Both have the same byte order.
struct Target {
  uint64_t address;
  uint32_t rkey;
};
// The server's private data of an acceptance.
struct Offer {
  struct Target targets[2];
  uint32_t srq_number;
};

// An id that is bound to the device of the server's address, without a queue pair.
struct rdma_cm_id* resolved_id(const struct Side* side, enum Service service);
// An id without a device: not bound at all, or to all addresses.
struct rdma_cm_id* unbound_id(void);
struct rdma_cm_id* id_of_all_addresses(void);
// A queue pair; `pd` may be null.
void create_pair(struct rdma_cm_id* id, struct ibv_pd* pd);

// The server: an id of the next request; accepts it; waits for its end, and destroys it.
struct rdma_cm_id* next_request(const struct Side* side, enum Service service);
void accept_request(struct rdma_cm_id* id, const struct Offer* offer);
void await_disconnected(struct rdma_cm_id* id);
void end_server(struct rdma_cm_id* id);
// All but the acceptance of a connection that makes no offer.
struct rdma_cm_id* next_connected(const struct Side* side);

// The client: connects; disconnects, and destroys the id.
void connect_pair(struct rdma_cm_id* id, struct Offer* offer);
void end_client(struct rdma_cm_id* id);

// The next completion has that status; returns it.
struct ibv_wc sent(struct rdma_cm_id* id, enum ibv_wc_status status);
struct ibv_wc received(struct rdma_cm_id* id, enum ibv_wc_status status);

// Bytes that follow from a seed; whether those from `first` to `end` are still there.
void fill(void* memory, size_t length, unsigned seed);
int matches(const void* memory, size_t first, size_t end, unsigned seed);
void deregister(struct ibv_mr* mr);
