// SPDX-License-Identifier: BSD-2-Clause
// How do two processes of a host share a memory region with experimental verbs?
//
// usage: ibv_shared_mr [-p TCP_PORT] [-d DEVICE] [-s BYTES] [-n] [-a ADDRESS] [SERVER]
//
// Without SERVER the program is the server: it creates a region and sends its id, a line of text,
// to a client on the same host. With SERVER, a host name for TCP, it is the client: it attaches to
// that region, writes a pattern into it, and sends how many bytes it has written. Then the server
// looks whether the pattern is in its memory.
//
//   -n   the client maps the memory and does not register it (IBV_EXP_ACCESS_NO_RDMA)
//   -a   where the client wants the memory; it is used wherever it lies
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct Options {
  const char* port;
  const char* device;
  const char* server;
  size_t bytes;
  int no_rdma;
  void* address;
};

static void require(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

static struct ibv_context* open_device(const char* name) {
  struct ibv_device** const devices = ibv_get_device_list(NULL);
  require(devices != NULL, "ibv_get_device_list");
  struct ibv_device** device = devices;
  while (*device != NULL && name != NULL && strcmp(ibv_get_device_name(*device), name) != 0)
    ++device;
  require(*device != NULL, "no such RDMA device");
  struct ibv_context* const context = ibv_open_device(*device);
  require(context != NULL, "ibv_open_device");
  ibv_free_device_list(devices);
  return context;
}

// A connection to the server, or of one client to this server.
static FILE* connect_tcp(const struct Options* options) {
  const struct addrinfo hints = {.ai_flags = options->server == NULL ? AI_PASSIVE : 0,
                                 .ai_family = AF_INET,
                                 .ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  require(getaddrinfo(options->server, options->port, &hints, &found) == 0, "getaddrinfo");
  int fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
  require(fd >= 0, "socket");
  if (options->server != NULL) {
    require(connect(fd, found->ai_addr, found->ai_addrlen) == 0, "connect");
  } else {
    const int listener = fd;
    const int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    require(bind(listener, found->ai_addr, found->ai_addrlen) == 0, "bind");
    require(listen(listener, 1) == 0, "listen");
    fd = accept(listener, NULL, NULL);
    require(fd >= 0, "accept");
    close(listener);
  }
  freeaddrinfo(found);
  FILE* const stream = fdopen(fd, "r");
  require(stream != NULL, "fdopen");
  return stream;
}

// `peer` is a stream for reading; a line is sent by its descriptor.
static void send_line(FILE* peer, const char* format, unsigned long value) {
  require(dprintf(fileno(peer), format, value) > 0, "sending to the other side");
}

static unsigned long receive_line(FILE* peer, int base) {
  char line[32] = "";
  require(fgets(line, sizeof line, peer) != NULL, "receiving from the other side");
  return strtoul(line, NULL, base);
}

static unsigned char pattern(size_t at) { return (unsigned char)(at * 7 + 1); }

static void serve(const struct Options* options, struct ibv_pd* pd) {
  struct ibv_exp_reg_mr_in in = {
      .pd = pd,
      .length = options->bytes,
      .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_ALLOCATE_MR |
                    IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE};
  struct ibv_mr* const region = ibv_exp_reg_mr(&in);
  require(region != NULL, "ibv_exp_reg_mr");
  FILE* const client = connect_tcp(options);
  send_line(client, "%04lx\n", region->handle);
  const size_t written = receive_line(client, 10);
  size_t right = 0;
  const unsigned char* const bytes = region->addr;
  while (right < written && right < region->length && bytes[right] == pattern(right)) ++right;
  printf("%zu of %zu bytes written, %zu are right\n", written, region->length, right);
  fclose(client);
  require(ibv_dereg_mr(region) == 0, "ibv_dereg_mr");
  if (written == 0 || right != written) exit(1);
}

static void attach(const struct Options* options, struct ibv_pd* pd) {
  FILE* const server = connect_tcp(options);
  struct ibv_exp_reg_shared_mr_in in = {.mr_handle = (uint32_t)receive_line(server, 16),
                                        .pd = pd,
                                        .addr = options->address,
                                        .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE};
  if (options->no_rdma) in.exp_access |= IBV_EXP_ACCESS_NO_RDMA;
  struct ibv_mr* const region = ibv_exp_reg_shared_mr(&in);
  require(region != NULL, "ibv_exp_reg_shared_mr");
  printf(
      "attached %zu bytes%s%s\n", region->length, region->lkey == 0 ? ", without a key" : "",
      options->address == NULL || region->addr == options->address ? "" : ", at another address");
  unsigned char* const bytes = region->addr;
  for (size_t i = 0; i < region->length; ++i) bytes[i] = pattern(i);
  send_line(server, "%lu\n", region->length);
  fclose(server);
  require(ibv_dereg_mr(region) == 0, "ibv_dereg_mr");
}

static struct Options read_options(int count, char** words) {
  struct Options options = {.port = "18515", .bytes = 4096};
  for (int option; (option = getopt(count, words, "p:d:s:na:")) != -1;) {
    switch (option) {
      case 'p':
        options.port = optarg;
        break;
      case 'd':
        options.device = optarg;
        break;
      case 's':
        options.bytes = strtoull(optarg, NULL, 0);
        break;
      case 'n':
        options.no_rdma = 1;
        break;
      case 'a':
        options.address = (void*)(uintptr_t)strtoull(optarg, NULL, 0);
        break;
      default:
        exit(2);
    }
  }
  options.server = words[optind];
  return options;
}

int main(int count, char** words) {
  const struct Options options = read_options(count, words);
  struct ibv_context* const context = open_device(options.device);
  struct ibv_pd* const pd = ibv_alloc_pd(context);
  require(pd != NULL, "ibv_alloc_pd");
  if (options.server == NULL) {
    serve(&options, pd);
  } else {
    attach(&options, pd);
  }
  require(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
  require(ibv_close_device(context) == 0, "ibv_close_device");
  return 0;
}
