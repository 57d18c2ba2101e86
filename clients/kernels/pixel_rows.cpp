#include "clients/kernels/pixel_rows.hpp"

#include "clients/kernels/row_products.hpp"

namespace fl::kernels {

template <class V>
template <class Visit>
[[gnu::always_inline]] inline void PixelRows<V>::in_pieces(const RowBlock& block, const Visit& visit) const {
  detail::in_pieces<kRowsPerBlock>(block.count, [&]<int R>(int first) {
    detail::Rows<R, V> a;
    for (int r = 0; r < R; ++r) a.row[r] = a.next[r] = block.features + static_cast<std::size_t>(first + r) * D_;
    visit.template operator()<R>(a, first);
  });
}

template <class V>
template <bool, class X>
void PixelRows<V>::margins(const RowBlock& block, const X* x, std::size_t outputs, std::size_t stride, double* z) const {
  in_pieces(block, [&]<int R>(const detail::Rows<R, V>& a, int first) {
    detail::dot_outputs<R, detail::kNone>(a, x, outputs, D_, stride, z + first);
  });
}

template <class V>
void PixelRows<V>::add(const RowBlock& block, const double* z, std::size_t outputs, std::size_t stride, double* acc) const {
  in_pieces(block, [&]<int R>(const detail::Rows<R, V>& a, int first) {
    for (std::size_t o = 0; o < outputs; ++o) detail::add_rows<R, detail::kNone>(a, z + o * stride + first, D_, acc + o * D_);
  });
}

FL_INSTANTIATE_ROWS(PixelRows);

}  // namespace fl::kernels
