"""Bags as rosbags, which is none of ours, writes them."""

from collections.abc import Sequence
from pathlib import Path

from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

TYPESTORE = get_typestore(Stores.ROS2_JAZZY)


def write_with_rosbags(
    directory: Path,
    messages: Sequence[tuple[str, str, int, bytes]],
    plugin: StoragePlugin = StoragePlugin.MCAP,
    version: int = 9,
    compression: CompressionMode | None = None,
) -> Path:
    """Record messages: topic, type, time of reception [ns], CDR bytes."""
    writer = Writer(directory, version=version, storage_plugin=plugin)
    if compression:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        types = {topic: kind for topic, kind, _, _ in messages}
        added = {t: writer.add_connection(t, k, typestore=TYPESTORE) for t, k in types.items()}
        for topic, _, time, payload in messages:
            writer.write(added[topic], time, payload)
    return directory
