#include "clients/kernels/dense_rows.hpp"

#include "clients/kernels/row_products.hpp"

namespace fl::kernels {

// Calls visit.operator()<R>(rows, first) for each piece of a block.
template <class V>
template <class Visit>
[[gnu::always_inline]] inline void DenseRows<V>::in_pieces(const RowBlock& block, const Visit& visit) const {
  detail::in_pieces<kRowsPerBlock>(block.count, [&]<int R>(int first) {
    detail::Rows<R, V> a;
    for (int r = 0; r < R; ++r) {
      const std::size_t after = static_cast<std::size_t>(first + r);
      a.row[r] = data_ + std::size_t{block.rows[first + r]} * stride_;
      a.next[r] = after < block.next.size() ? data_ + std::size_t{block.next[after]} * stride_ : a.row[r];
    }
    visit.template operator()<R>(a, first);
  });
}

template <class V>
template <bool kAdd, class X>
void DenseRows<V>::margins(const RowBlock& block, const X* x, std::size_t outputs, std::size_t stride, double* z) const {
  in_pieces(block, [&]<int R>(const detail::Rows<R, V>& a, int first) {
    detail::dot_outputs<R, kAdd ? detail::kHalf : detail::kAll>(a, x, outputs, D_, stride, z + first);
  });
}

template <class V>
void DenseRows<V>::add(const RowBlock& block, const double* z, std::size_t outputs, std::size_t stride, double* acc) const {
  in_pieces(block, [&]<int R>(const detail::Rows<R, V>& a, int first) {
    detail::add_rows<R, detail::kHalf>(a, z + first, D_, acc);
    for (std::size_t o = 1; o < outputs; ++o) detail::add_rows<R, detail::kNone>(a, z + o * stride + first, D_, acc + o * D_);
  });
}

FL_INSTANTIATE_ROWS(DenseRows);

}  // namespace fl::kernels
