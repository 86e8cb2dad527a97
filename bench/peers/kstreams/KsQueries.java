import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;
import org.rocksdb.*;

/**
 * Interactive queries of a global table behind HTTP. args: bootstrap, application id, state dir, port.
 *
 * A global table reads the topic in bulk up to its end before it shows anything. A table that shares partitions with other instances would be shown while it is
 * read for the first time, record by record: one that is its own changelog is restored only up to the group's committed offset, and a new group has none.
 */
public final class KsQueries {
  static final String TOPIC = "snapshots", STATE = "keys";
  private final KafkaStreams streams;
  private volatile ReadOnlyKeyValueStore<byte[], byte[]> view;       // null until the topic has been read

  KsQueries(String boot, String application, String folder) {
    streams = new KafkaStreams(topology(), settings(boot, application, folder));
    streams.setStateListener((now, before) -> { if (now == KafkaStreams.State.RUNNING) open(); });
    streams.setUncaughtExceptionHandler(e -> { e.printStackTrace(); Runtime.getRuntime().halt(1); return null; });
  }

  static Properties settings(String boot, String application, String folder) {
    Properties p = new Properties();
    p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, boot);
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
    p.put(StreamsConfig.STATE_DIR_CONFIG, folder);
    p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);       // nothing is downstream that a cache would spare
    p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 5000);            // bounds what a restart reads again
    p.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Store.class);
    p.put(StreamsConfig.globalConsumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 10_000);
    p.put(StreamsConfig.globalConsumerPrefix(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG), 8 << 20);
    return p;
  }

  static Topology topology() {
    StreamsBuilder builder = new StreamsBuilder();
    builder.globalTable(TOPIC, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()),
        Materialized.<byte[], byte[], KeyValueStore<Bytes, byte[]>>as(STATE).withCachingDisabled());
    return builder.build();
  }

  private void open() {
    view = streams.store(StoreQueryParameters.fromNameAndType(STATE, QueryableStoreTypes.keyValueStore()));
  }

  /** A key's record, or null. Throws InvalidStateStoreException while the topic is read. */
  byte[] get(byte[] key) {
    if (view == null) throw new InvalidStateStoreException("the topic is being read");
    return view.get(key);
  }

  /** A cache large enough for the whole state; filters and hashed blocks are for gets by key. */
  public static final class Store implements RocksDBConfigSetter {
    private static final Cache CACHE = new LRUCache(3L << 30);
    private static final Filter FILTER = new BloomFilter(10, false);

    @Override public void setConfig(String name, Options options, Map<String, Object> configs) {
      BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
      table.setBlockCache(CACHE).setFilterPolicy(FILTER).setDataBlockIndexType(DataBlockIndexType.kDataBlockBinaryAndHash);
      options.setTableFormatConfig(table).setWriteBufferSize(64 << 20).setMaxWriteBufferNumber(3);
    }

    @Override public void close(String name, Options options) { }    // what all share lasts as long as the process
  }

  public static void main(String[] x) {
    KsQueries states = new KsQueries(x[0], x[1], x[2]);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> states.streams.close(Duration.ofSeconds(10))));
    Vertx vertx = Vertx.vertx(new VertxOptions().setPreferNativeTransport(true).setEventLoopPoolSize(1));
    vertx.createHttpServer().requestHandler(new KsAnswers(states)).listen(Integer.parseInt(x[3]), "127.0.0.1").await();
    states.streams.start();                                          // returns when the topic has been read
    System.out.println("STARTED, epoll: " + vertx.isNativeTransportEnabled());
  }
}
