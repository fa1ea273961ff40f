/* SPDX-License-Identifier: BSD-2-Clause */
/* Does a C program that includes Weft's header alone read the statistics of its domain? */
#include <rdma/fi_ext_weft.h>
#include <stdio.h>

int show_queues(struct fid_domain* domain); /* of docs/user/statistics.md */

static int show(int rc, const char* call) {
  if (rc != 0) fprintf(stderr, "%s: %d\n", call, rc);
  return rc;
}

int main(void) {
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_domain* domain;
  struct fid_cq* cq;
  struct fi_cq_attr attributes = {.size = 128};
  int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
  if (show(rc, "fi_getinfo")) return 1;
  if (show(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric")) return 1;
  if (show(fi_domain(fabric, info, &domain, NULL), "fi_domain")) return 1;
  if (show(fi_cq_open(domain, &attributes, &cq, NULL), "fi_cq_open")) return 1;
  if (show(show_queues(domain), "show_queues")) return 1;
  fi_close(&cq->fid);
  fi_close(&domain->fid);
  fi_close(&fabric->fid);
  fi_freeinfo(info);
  return 0;
}
