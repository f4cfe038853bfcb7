! Eigenvalues, singular values and a linear system of dense matrices, with LAPACK: eigen N.
program eigen
  implicit none
  integer :: n, info, i, j
  character(len=16) :: word
  double precision, allocatable :: a(:, :), b(:, :), w(:), work(:), rhs(:, :)
  integer, allocatable :: pivots(:)
  double precision :: dummy(1, 1)
  n = 400
  if (command_argument_count() > 0) then
    call get_command_argument(1, word)
    read (word, *) n
  end if
  allocate (a(n, n), b(n, n), w(n), work(64*n), rhs(n, 8), pivots(n))
  do j = 1, n
    do i = 1, n
      a(i, j) = 1d0/(1d0 + abs(i - j)) + merge(dble(n)/2, 0d0, i == j) + sin(dble(i*j))*1d-3
    end do
  end do
  a = (a + transpose(a))/2
  rhs = 1d0
  b = a
  call dgesv(n, 8, b, n, pivots, rhs, n, info)
  print '(a, f20.10)', 'solution ', sum(rhs)
  b = a
  call dsyev('V', 'U', n, b, n, w, work, 64*n, info)
  print '(a, f20.8)', 'eigenvalues ', sum(w)
  b = a
  call dgesvd('N', 'N', n, n, b, n, w, dummy, 1, dummy, 1, work, 64*n, info)
  print '(a, f20.8)', 'singular values ', sum(w)
end program
