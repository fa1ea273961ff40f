// SPDX-License-Identifier: BSD-2-Clause
// What is behind the rdma_cm_event of a program?
#include "cm_event.h"

#include <algorithm>
namespace weft::rdmacm {

CmEventRecord::CmEventRecord(CmId& of, rdma_cm_id* handle, rdma_cm_event_type type, int its_status)
    : rdma_cm_event{}, target(&of) {
  id = handle;
  event = type;
  status = its_status;
}

void CmEventRecord::set_private_data(rdma_conn_param& parameters,
                                     std::span<const std::byte> field) {
  std::ranges::copy(field, private_data_.begin());
  parameters.private_data = private_data_.data();
  parameters.private_data_len = static_cast<std::uint8_t>(field.size());
}

void CmEventRecord::set_private_data(rdma_ud_param& parameters, std::span<const std::byte> field) {
  std::ranges::copy(field, private_data_.begin());
  parameters.private_data = private_data_.data();
  parameters.private_data_len = static_cast<std::uint8_t>(field.size());
}

}  // namespace weft::rdmacm
