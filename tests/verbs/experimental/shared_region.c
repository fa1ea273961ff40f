/* SPDX-License-Identifier: BSD-2-Clause */
/* Which process creates, and which attaches to, a shared memory region? The test's commands say.
 *
 *   shared_region create            prints the region's id
 *   shared_region attach ID [write] prints the region's length, or the error
 *
 * Then it obeys lines of its input: "put WORD" into the memory, "get" prints the word that is in
 * it, "leave" deregisters the region. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLength = 3 * 4096 };

static struct ibv_pd* open_domain(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context* context = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
  return context != NULL ? ibv_alloc_pd(context) : NULL;
}

static struct ibv_mr* create(struct ibv_pd* pd) {
  struct ibv_exp_reg_mr_in in = {0};
  in.pd = pd;
  in.length = kLength;
  in.exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_ALLOCATE_MR |
                  IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE;
  return ibv_exp_reg_mr(&in);
}

static struct ibv_mr* attach(struct ibv_pd* pd, const char* id, int writes) {
  struct ibv_exp_reg_shared_mr_in in = {0};
  in.mr_handle = (uint32_t)strtoul(id, NULL, 16);
  in.pd = pd;
  in.exp_access = writes ? IBV_EXP_ACCESS_LOCAL_WRITE : IBV_EXP_ACCESS_REMOTE_READ;
  return ibv_exp_reg_shared_mr(&in);
}

/* Prints an answer, which the test waits for. */
static void answer(const char* word) {
  puts(word);
  fflush(stdout);
}

static int obey(struct ibv_mr* region, const char* line) {
  if (strncmp(line, "put ", 4) == 0) {
    strcpy((char*)region->addr, line + 4);
    answer("done");
  } else if (strcmp(line, "get") == 0) {
    answer((const char*)region->addr);
  } else if (strcmp(line, "leave") == 0) {
    if (ibv_dereg_mr(region) != 0) return 1;
    answer("done");
  } else {
    return 1;
  }
  return 0;
}

int main(int count, char** arguments) {
  char line[64];
  struct ibv_pd* pd = open_domain();
  struct ibv_mr* region;
  if (pd == NULL || count < 2) return 1;
  region = count == 2 ? create(pd) : attach(pd, arguments[2], count == 4);
  if (region == NULL) {
    answer(strerror(errno));
    return 0;
  }
  snprintf(line, sizeof line, count == 2 ? "%08x" : "%u",
           count == 2 ? region->handle : (unsigned)region->length);
  answer(line);
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (obey(region, line) != 0) return 1;
  }
  return 0;
}
