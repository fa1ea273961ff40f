// SPDX-License-Identifier: BSD-2-Clause
// Does memory of rdma_cm do what its manual says? (docs/conformance/rdma_cm_memory.md)
//
// usage: weft_rdma_memory list
//        weft_rdma_memory server ADDRESS CHECK...
//        weft_rdma_memory client ADDRESS PORT PORT PORT CHECK...
//
// The server prints the ports of its services, and the client gets them. Each check is done by both
// processes, in the order of the command line. A check that has passed is a line `passed NAME`.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "side.h"

static const struct Check* const kSources[] = {kRegistrationChecks, kRemoteAccessChecks,
                                               kSharedQueueChecks, kPostChecks};
enum { kNumberOfSources = sizeof kSources / sizeof kSources[0] };

static const struct Check* find(const char* name) {
  for (int i = 0; i < kNumberOfSources; ++i) {
    for (const struct Check* each = kSources[i]; each->name != NULL; ++each) {
      if (strcmp(each->name, name) == 0) return each;
    }
  }
  return NULL;
}

static void list(void) {
  for (int i = 0; i < kNumberOfSources; ++i) {
    for (const struct Check* each = kSources[i]; each->name != NULL; ++each) puts(each->name);
  }
}

static void listen_for(struct Side* side, enum Service service) {
  static const enum ibv_qp_type kTypes[] = {IBV_QPT_RC, IBV_QPT_XRC_RECV, IBV_QPT_UD};
  struct rdma_addrinfo hints = {0};
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_qp_type = kTypes[service];
  hints.ai_port_space = service == kDatagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
  struct rdma_addrinfo* info = NULL;
  EXPECT(rdma_getaddrinfo(side->host, NULL, &hints, &info) == 0);
  EXPECT(rdma_create_ep(&side->listeners[service], info, NULL, NULL) == 0);
  rdma_freeaddrinfo(info);
  EXPECT(rdma_listen(side->listeners[service], 0) == 0);
  snprintf(side->ports[service], kPortText, "%u",
           (unsigned)ntohs(rdma_get_src_port(side->listeners[service])));
}

static void check(const struct Side* side, int is_server, const char* name) {
  const struct Check* const found = find(name);
  if (found == NULL) {
    printf("there is no check %s\n", name);
    exit(2);
  }
  (is_server ? found->server : found->client)(side, found->variant);
  printf("passed %s\n", name);
}

int main(int count, char** words) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (count == 2 && strcmp(words[1], "list") == 0) {
    list();
    return 0;
  }
  const int is_server = count > 3 && strcmp(words[1], "server") == 0;
  const int is_client = count > 6 && strcmp(words[1], "client") == 0;
  if (!is_server && !is_client) return 2;
  struct Side side = {0};
  side.host = words[2];
  for (int i = 0; i < kServices; ++i) {
    if (is_server) {
      listen_for(&side, (enum Service)i);
    } else {
      snprintf(side.ports[i], kPortText, "%s", words[3 + i]);
    }
  }
  if (is_server) printf("ports %s %s %s\n", side.ports[0], side.ports[1], side.ports[2]);
  for (int i = is_server ? 3 : 6; i < count; ++i) check(&side, is_server, words[i]);
  for (int i = 0; i < kServices; ++i) {
    if (is_server) rdma_destroy_ep(side.listeners[i]);
  }
  return 0;
}
