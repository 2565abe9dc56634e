package crdcheck
import ("testing";"os";"context";"sigs.k8s.io/yaml"
 apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
 v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation")
func TestX(t *testing.T){
 for _,f:=range []string{"authstacks","latencytests"}{
 b,_:=os.ReadFile("/work/main/config/crd/bases/authstack.dev_"+f+".yaml")
 var c v1.CustomResourceDefinition
 if err:=yaml.Unmarshal(b,&c);err!=nil{t.Fatal(err)}
 v1.SetDefaults_CustomResourceDefinition(&c)
 var i apiext.CustomResourceDefinition
 if err:=v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&c,&i,nil);err!=nil{t.Fatal(err)}
 i.Status.StoredVersions=[]string{"v1alpha1"}
 for _,e:=range validation.ValidateCustomResourceDefinition(context.Background(),&i){t.Error(e)}
 }}
