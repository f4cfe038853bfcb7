# The compilers of a build: clang where the name of its flags says so. Sourced by the steps of field.toml.
case ${VARIANT:-} in
    clang*) CC=clang CXX=clang++ ;;
    *) CC=gcc CXX=g++ ;;
esac
FC=gfortran
export CC CXX FC
