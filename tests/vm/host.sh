# Before a boot: what the guest compares with. Where this kernel cannot trace, or we are not root,
# there is none, and the guest's tests that need it are skipped.
make -s -C "$TOP" trace-programs >&2 || exit 1
rm -rf "$TOP/build/sites"
bash "$TOP/tests/vm/sites.sh" "$TOP/build/sites" >&2 || rm -rf "$TOP/build/sites"
