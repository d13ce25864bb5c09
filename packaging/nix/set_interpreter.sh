# set_interpreter.sh FILE INTERPRETER LIBRARIES: gives an executable of a release another loader and folder of libraries.
#
# deno compile appends the program to an ELF file and finds it from the end of the whole. patchelf alone would put new
# sections behind it, so it gets only the ELF file.
set -euo pipefail

file=$1
# read_number OFFSET BYTES
read_number() { od --address-radix=n --format="u$2" --skip-bytes="$1" --read-bytes="$2" "$file" | tr -d ' '; }
# The section headers are the last part: e_shoff + e_shentsize * e_shnum. See elf(5).
end=$(($(read_number 40 8) + $(read_number 58 2) * $(read_number 60 2)))
head --bytes="$end" "$file" >"$file.elf"
patchelf --set-interpreter "$2" --set-rpath "$3" "$file.elf"
tail --bytes="+$((end + 1))" "$file" >>"$file.elf"
chmod 0755 "$file.elf"
mv "$file.elf" "$file"
