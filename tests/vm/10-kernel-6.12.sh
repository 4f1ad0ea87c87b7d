# Everything but the tracer, on the kernel of bookworm-backports; one boot.
exec "$TOP/tools/vm" --kernel 6.12 -- "$TOP/tests/vm/guest/run" "$TOP"/tests/vm/guest/[1-6]*.sh
