// SPDX-License-Identifier: BSD-2-Clause
// What does a poll of a completion queue cost beside idle queue pairs?
//
// usage: weft_idle_queue_pairs COUNT SECONDS CORE
//
// COUNT queue pairs, each connected to itself, complete a WRITE each. Then the completion queue is
// polled, and finds nothing. Prints one line of JSON: nanoseconds of a poll.
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "failure.h"
#include "process.h"
#include "timed_pieces.h"

namespace weft::bench {
namespace {

constexpr std::size_t kBytes = 4096;
constexpr unsigned kPiece = 1000;  // polls that are timed together

template <class Object>
Object* required(Object* object, const char* what) {
  check_system(object != nullptr ? 0 : -1, what);
  return object;
}

void succeed(int error, const char* what) {
  if (error != 0) die(what, std::to_string(error));
}

class QueuePairs {
 public:
  QueuePairs() {
    ibv_device** const devices = required(ibv_get_device_list(nullptr), "ibv_get_device_list");
    context_ = required(ibv_open_device(required(devices[0], "no device")), "ibv_open_device");
    ibv_free_device_list(devices);
    pd_ = required(ibv_alloc_pd(context_), "ibv_alloc_pd");
    mr_ = required(ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
                   "ibv_reg_mr");
    cq_ = required(ibv_create_cq(context_, 16, nullptr, nullptr, 0), "ibv_create_cq");
  }

  // One more, connected to itself.
  void add() {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq_;
    wanted.cap = {16, 1, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    wanted.sq_sig_all = 1;
    ibv_qp* const qp = required(ibv_create_qp(pd_, &wanted), "ibv_create_qp");
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    succeed(ibv_modify_qp(qp, &attributes,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            "to INIT");
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = qp->qp_num;
    attributes.ah_attr.is_global = 1;
    succeed(ibv_query_gid(context_, 1, 0, &attributes.ah_attr.grh.dgid), "ibv_query_gid");
    attributes.ah_attr.grh.hop_limit = 64;
    attributes.ah_attr.port_num = 1;
    attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer = 12;
    succeed(ibv_modify_qp(qp, &attributes,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            "to RTR");
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.retry_cnt = attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 1;
    succeed(ibv_modify_qp(qp, &attributes,
                          IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                              IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
            "to RTS");
    write(qp);
  }

  bool poll() {
    ibv_wc completion{};
    const int found = ibv_poll_cq(cq_, 1, &completion);
    if (found != 0) succeed(found == 1 ? static_cast<int>(completion.status) : found, "completion");
    return found != 0;
  }

 private:
  void write(ibv_qp* qp) {
    const auto address = reinterpret_cast<std::uint64_t>(memory_.data());
    ibv_sge local{address, 8, mr_->lkey};
    ibv_send_wr request{};
    request.sg_list = &local;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma = {address + kBytes / 2, mr_->rkey};
    ibv_send_wr* bad = nullptr;
    succeed(ibv_post_send(qp, &request, &bad), "ibv_post_send");
    while (!poll()) {
    }
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  std::vector<char> memory_ = std::vector<char>(kBytes);
};

double nanoseconds_of_poll(QueuePairs& pairs, double seconds) {
  return 1e9 * seconds_of_each(seconds, kPiece, [&] {
           if (pairs.poll()) die("ibv_poll_cq", "a completion without a request");
         });
}

}  // namespace
}  // namespace weft::bench

int main(int count, char** words) {
  using namespace weft::bench;
  if (count != 4) {
    std::fprintf(stderr, "usage: %s COUNT SECONDS CORE\n", words[0]);
    return 2;
  }
  pin_to(std::atoi(words[3]));
  QueuePairs pairs;
  const int number = std::atoi(words[1]);
  for (int i = 0; i < number; ++i) pairs.add();
  const double value = nanoseconds_of_poll(pairs, std::strtod(words[2], nullptr));
  std::printf("{\"metric\": \"poll\", \"queue_pairs\": %d, \"value\": %.3f}\n", number, value);
  return 0;
}
