// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_cm_event of a program?
#include "cm_event.h"

namespace weft::rdmacm {

CmEventRecord::CmEventRecord(CmId& of, rdma_cm_id* handle, rdma_cm_event_type type, int its_status)
    : rdma_cm_event{}, target(&of) {
  id = handle;
  event = type;
  status = its_status;
}

}  // namespace weft::rdmacm
