import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.*;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedBroadcastProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import static java.nio.charset.StandardCharsets.UTF_8;

/** Alerts by rules in broadcast state. args: bootstrap, group id, checkpoint dir. A changed rule is applied to the state of every key. */
public class AlertJob {
  static final TypeInformation<byte[]> BYTES = PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
  static final TypeInformation<Tuple2<byte[], byte[]>> OUT = Types.TUPLE(BYTES, BYTES);
  static final ObjectMapper JSON = new ObjectMapper();

  /** A row of the topic of rules. Its version is its offset. Without `keys` it was removed. */
  public static class Rule { public String name, keys; public long version; public Double change, above; }
  /** What is known of a device: its last two temperatures, and the versions of the rules that have an open alert. */
  public static class Device { public long events; public double last = Double.NaN, previous = Double.NaN; public Map<String, Long> open = new HashMap<>(); }

  static final MapStateDescriptor<String, Rule> RULES = new MapStateDescriptor<>("rules", Types.STRING, Types.POJO(Rule.class));
  static final ValueStateDescriptor<Device> DEVICE = new ValueStateDescriptor<>("device",
      Types.POJO(Device.class, Map.of("events", Types.LONG, "last", Types.DOUBLE, "previous", Types.DOUBLE, "open", Types.MAP(Types.STRING, Types.LONG))));

  static final class Events implements KafkaRecordDeserializationSchema<Tuple2<String, Double>> {
    transient Rec r;
    @Override public void deserialize(ConsumerRecord<byte[], byte[]> c, Collector<Tuple2<String, Double>> out) {
      if (r == null) r = new Rec();
      if (r.parse(c.value(), true, c.timestamp())) out.collect(Tuple2.of(r.device, r.temp));
    }
    @Override public TypeInformation<Tuple2<String, Double>> getProducedType() { return Types.TUPLE(Types.STRING, Types.DOUBLE); }
  }

  static final class Rows implements KafkaRecordDeserializationSchema<Rule> {
    @Override public void deserialize(ConsumerRecord<byte[], byte[]> c, Collector<Rule> out) throws java.io.IOException {
      Rule rule = new Rule();
      rule.name = new String(c.key(), UTF_8);
      rule.version = c.offset();
      if (c.value() != null) {
        JsonNode value = JSON.readTree(c.value()).get("value");
        rule.keys = value.path("keys").asText("*");
        rule.change = value.hasNonNull("change") ? value.get("change").asDouble() : null;
        rule.above = value.hasNonNull("above") ? value.get("above").asDouble() : null;
      }
      out.collect(rule);
    }
    @Override public TypeInformation<Rule> getProducedType() { return Types.POJO(Rule.class); }
  }

  static final class Evaluate extends KeyedBroadcastProcessFunction<String, Tuple2<String, Double>, Rule, Tuple2<byte[], byte[]>> {
    transient ValueState<Device> state; transient Map<String, Pattern> patterns;
    @Override public void open(OpenContext c) { state = getRuntimeContext().getState(DEVICE); patterns = new HashMap<>(); }

    @Override public void processElement(Tuple2<String, Double> e, ReadOnlyContext c, Collector<Tuple2<byte[], byte[]>> out) throws Exception {
      Device device = state.value();
      if (device == null) device = new Device();
      device.events++; device.previous = device.last; device.last = e.f1;
      ObjectNode alerts = null;
      for (Map.Entry<String, Rule> rule : c.getBroadcastState(RULES).immutableEntries()) alerts = evaluate(e.f0, device, rule.getKey(), rule.getValue(), alerts);
      state.update(device);
      if (alerts != null) out.collect(Tuple2.of(e.f0.getBytes(UTF_8), JSON.writeValueAsBytes(alerts)));
    }

    @Override public void processBroadcastElement(Rule rule, Context c, Collector<Tuple2<byte[], byte[]>> out) throws Exception {
      BroadcastState<String, Rule> rules = c.getBroadcastState(RULES);
      if (rule.keys == null) rules.remove(rule.name); else rules.put(rule.name, rule);
      c.applyToKeyedState(DEVICE, (key, known) -> {
        Device device = known.value();
        ObjectNode alerts = evaluate(key, device, rule.name, rule.keys == null ? null : rule, null);
        if (alerts == null) return;
        known.update(device);
        out.collect(Tuple2.of(key.getBytes(UTF_8), JSON.writeValueAsBytes(alerts)));
      });
    }

    /** Adds the alerts of a rule that open or close. */
    ObjectNode evaluate(String key, Device device, String name, Rule rule, ObjectNode alerts) {
      Long open = device.open.get(name);
      boolean holds = rule != null && applies(rule.keys, key) && (rule.above != null && device.last >= rule.above
          || rule.change != null && Math.abs(device.last - device.previous) >= rule.change);  // no number equals none
      if (open != null && (!holds || open != rule.version)) { alerts = add(alerts, key, device, name, open, "closed"); device.open.remove(name); open = null; }
      if (open == null && holds) { alerts = add(alerts, key, device, name, rule.version, "open"); device.open.put(name, rule.version); }
      return alerts;
    }

    static ObjectNode add(ObjectNode alerts, String key, Device device, String rule, long version, String status) {
      if (alerts == null) { alerts = JSON.createObjectNode().put("device_id", key).put("version", device.events); alerts.putArray("alerts"); }
      alerts.withArray("alerts").addObject().put("rule", rule).put("rule_version", version).put("status", status);
      return alerts;
    }

    boolean applies(String keys, String key) {
      return keys.equals("*") || patterns.computeIfAbsent(keys, k -> Pattern.compile(k.replace("*", ".*").replace("?", "."), Pattern.DOTALL)).matcher(key).matches();
    }
  }

  static final class Ser implements KafkaRecordSerializationSchema<Tuple2<byte[], byte[]>> {
    @Override public ProducerRecord<byte[], byte[]> serialize(Tuple2<byte[], byte[]> e, KafkaSinkContext c, Long ts) { return new ProducerRecord<>("changes", e.f0, e.f1); }
  }

  static <T> KafkaSource<T> source(String boot, String group, String topic, KafkaRecordDeserializationSchema<T> read) {
    return KafkaSource.<T>builder().setBootstrapServers(boot).setGroupId(group).setClientIdPrefix(group + "-" + topic).setTopics(topic)
        .setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(read).build();
  }

  public static void main(String[] x) throws Exception {
    Configuration c = new Configuration();
    c.setString("state.backend.type", "hashmap");
    c.setString("execution.checkpointing.interval", "5s");
    c.setString("execution.checkpointing.mode", "AT_LEAST_ONCE");
    c.setString("execution.checkpointing.dir", "file://" + x[2]);
    c.setString("execution.buffer-timeout.interval", "1ms");
    c.setString("pipeline.object-reuse", "true");
    c.setString("taskmanager.numberOfTaskSlots", "2");
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, c);
    DataStream<Tuple2<String, Double>> events = env.fromSource(source(x[0], x[1], "events", new Events()), WatermarkStrategy.noWatermarks(), "events");
    DataStream<Rule> rules = env.fromSource(source(x[0], x[1], "limits", new Rows()), WatermarkStrategy.noWatermarks(), "rules");
    events.keyBy(e -> e.f0, Types.STRING).connect(rules.broadcast(RULES)).process(new Evaluate(), OUT).name("alerts")
        .sinkTo(KafkaSink.<Tuple2<byte[], byte[]>>builder().setBootstrapServers(x[0]).setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
            .setRecordSerializer(new Ser()).setProperty("linger.ms", "1").setProperty("batch.size", "131072").setProperty("buffer.memory", "67108864").build());
    System.out.println("STARTED");
    env.execute("alerts");
  }
}
