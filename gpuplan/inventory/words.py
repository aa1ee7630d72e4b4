"""What inventories are written with."""

API_VERSION = "gpuplan.dev/inventory/v1"
UNKNOWN = "unknown"  # the type of a device that no text names

# The commands that say whether the host uses a drive, and a network card. MOUNTPOINTS, which lists
# all mount points of a device, is in no util-linux before 2.37.
DRIVE_USES = "lsblk -J -b -o NAME,TYPE,SIZE,TRAN,MODEL,SERIAL,FSTYPE,MOUNTPOINT"
CARD_USES = "ip -json route show table all"
