/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which live statistics does an access domain of Weft give? fi_weft_domain(3)
 *
 *     struct fi_weft_ops_domain *weft;
 *     fi_open_ops(&domain->fid, FI_WEFT_DOMAIN_OPS, FI_WEFT_DOMAIN_VERSION, (void **)&weft, NULL);
 *
 * A later version of the interface appends functions to the table and members to the structures:
 * nothing else changes. So a program gets what the version has that it asked for, the flags of
 * fi_open_ops(3).
 */
#ifndef RDMA_FI_EXT_WEFT_H
#define RDMA_FI_EXT_WEFT_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_WEFT_DOMAIN_OPS "weft_domain"
#define FI_WEFT_DOMAIN_VERSION 1

/* The main numbers of a domain. */
struct fi_weft_domain_stats {
  /* Open objects. */
  uint64_t regions;
  uint64_t endpoints;
  uint64_t completion_queues;
  uint64_t counters;
  uint64_t address_vectors;
  /* Events of all its endpoints since it was opened, those of closed endpoints included. */
  uint64_t packets_sent;
  uint64_t packets_received;
  uint64_t retransmissions; /* packets sent that had been sent before */
  uint64_t ack_timeouts;
  uint64_t packets_dropped;    /* by the endpoint */
  uint64_t datagrams_dropped;  /* messages of FI_EP_DGRAM */
  uint64_t refused_operations; /* operations of its endpoints that were refused */
  uint64_t refused_requests;   /* requests of peers that its endpoints refused, over the network */
};

/* A counter and its name, which stays as long as the provider is loaded. */
struct fi_weft_counter {
  const char* name;
  uint64_t value;
};

/* A completion queue. */
struct fi_weft_cq_stats {
  struct fid_cq* cq;
  uint64_t size;     /* entries from which on operations are held back */
  uint64_t queued;   /* entries that wait to be read */
  uint64_t reported; /* entries that were added since it was opened */
  uint64_t errors;   /* entries that wait to be read by fi_cq_readerr(3) */
};

/* An endpoint. Before fi_enable(3) all numbers are 0. */
struct fi_weft_ep_stats {
  struct fid_ep* ep;
  uint32_t type; /* enum fi_ep_type */
  uint32_t enabled;
  uint64_t destinations; /* peers that it has sent to, as long as they live */
  uint64_t sources;      /* peers that have sent to it, as long as they live */
  uint64_t receives;     /* posted receives that wait for messages, shared ones included */
  uint64_t kept_bytes;   /* memory of messages that wait for receives */
};

/*
 * Any thread may call the functions under every threading model, for as long as the domain is
 * open. Threads that move data wait for a moment while endpoint_counters() and endpoints() look at
 * an endpoint; the other functions make none wait. They return 0 or a negative error: -FI_EINVAL
 * for a null pointer or a size of 0; -FI_EPERM in a forked child.
 *
 * `size` is the size of the structure as the program knows it.
 *
 * A list has room for `*count` entries; `*count` becomes the number of those that there are. If
 * these are more the list is filled and -FI_ETOOSMALL is returned. It may be null where `*count` is
 * 0.
 */
struct fi_weft_ops_domain {
  size_t size; /* of this table */
  int (*read)(struct fid_domain* domain, struct fi_weft_domain_stats* stats, size_t size);
  /* All counters of the domain, as docs/user/network.md explains them; they never decrease. */
  int (*counters)(struct fid_domain* domain, struct fi_weft_counter* list, size_t* count);
  /* Those of the process that belong to no endpoint of any domain. */
  int (*process_counters)(struct fid_domain* domain, struct fi_weft_counter* list, size_t* count);
  /*
   * Those of an endpoint of the domain, or of all endpoints that share its port; all 0 before
   * fi_enable(3). -FI_EINVAL for an object that is no endpoint.
   */
  int (*endpoint_counters)(struct fid_ep* ep, struct fi_weft_counter* list, size_t* count);
  /* The completion queues of the domain. */
  int (*queues)(struct fid_domain* domain, struct fi_weft_cq_stats* list, size_t size,
                size_t* count);
  /* Its endpoints. */
  int (*endpoints)(struct fid_domain* domain, struct fi_weft_ep_stats* list, size_t size,
                   size_t* count);
};

#ifdef __cplusplus
}
#endif

#endif
